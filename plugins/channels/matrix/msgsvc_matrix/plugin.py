"""Hook implementations of the Matrix channel."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelKind, ChatColours, MessengerLook
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_matrix.channel import MatrixChannel
from msgsvc_matrix.settings import OPERATOR_SETTINGS, MatrixSettings
from msgsvc_matrix.texts import OwnTexts

HERE = Path(__file__).parent

#: A grid of nine dots in a rounded frame, drawn for this plugin; it is not the logo of Matrix.
MARK = (
    "M6 2.5h12A3.5 3.5 0 0 1 21.5 6v12a3.5 3.5 0 0 1-3.5 3.5H6A3.5 3.5 0 0 1 2.5 18V6A3.5 3.5 0 0 1 6 2.5zM6"
    " 4.3A1.7 1.7 0 0 0 4.3 6v12A1.7 1.7 0 0 0 6 19.7h12a1.7 1.7 0 0 0 1.7-1.7V6A1.7 1.7 0 0 0 18 4.3z"
    "M6.6 6.6h2.6v2.6H6.6zM10.7 6.6h2.6v2.6h-2.6zM14.8 6.6h2.6v2.6h-2.6z"
    "M6.6 10.7h2.6v2.6H6.6zM10.7 10.7h2.6v2.6h-2.6zM14.8 10.7h2.6v2.6h-2.6z"
    "M6.6 14.8h2.6v2.6H6.6zM10.7 14.8h2.6v2.6h-2.6zM14.8 14.8h2.6v2.6h-2.6z"
)

#: In the manner of the most used client, Element, by day and by night, with colours that are read.
LOOK = MessengerLook(
    light=ChatColours(ground="#ffffff", bubble="#f0f2f5", text="#1b1d22", link="#0a6f51"),
    dark=ChatColours(ground="#101317", bubble="#21262d", text="#ebeef2", link="#3fd0a0"),
    buttons="inside",
)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "matrix",
            MatrixSettings,
            MatrixChannel,
            OPERATOR_SETTINGS,
            title="Matrix",
            mark=MARK,
            look=LOOK,
            about="Matrix, on any homeserver",
        )
    ]


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def create_plugin(context: PluginContext) -> "MatrixPlugin":
    return MatrixPlugin(context)


class MatrixPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        self._texts = OwnTexts(context.texts, context.config.default_lang)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {OwnTexts: self._texts}
