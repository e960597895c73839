"""Hook implementations of the email channel."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelKind
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_email.channel import EmailChannel
from msgsvc_email.settings import OPERATOR_SETTINGS, EmailSettings
from msgsvc_email.texts import EmailTexts

#: An envelope, drawn for this plugin.
MARK = (
    "M3 5h18a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM5"
    ".3 7l6.7 5.4L18.7 7zM4 8.5V17h16V8.5l-8 6.4z"
)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "email", EmailSettings, EmailChannel, OPERATOR_SETTINGS, title="Email", mark=MARK
        )
    ]


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def create_plugin(context: PluginContext) -> "EmailPlugin":
    return EmailPlugin(context)


class EmailPlugin:
    """The plugin's objects, which its channels find."""

    def __init__(self, context: PluginContext) -> None:
        self._texts = EmailTexts(context.texts)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {EmailTexts: self._texts}
