"""Hook implementations: declares the channel kind `telegram`."""

from collections.abc import Sequence

from msgsvc_core.channels import ChannelKind, ChatColours, MessengerLook
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_telegram.channel import TelegramChannel
from msgsvc_telegram.settings import TelegramSettings

#: A paper plane, drawn for this plugin; it is not the messenger's logo.
MARK = (
    "M21.5 3.2 2.6 10.6c-.9.35-.85 1.6.08 1.88l4.5 1.4 1.75 5.5c.23.72 1.13.93 1.65.39l2.5-2.6 "
    "4.5 3.3c.63.47 1.53.12 1.7-.65L22.7 4.3c.17-.8-.5-1.4-1.2-1.1zM9.9 14.6l-.6 3-1.1-4 8.6-6z"
)

#: In the manner of its own themes by day and by night, with colours that are read.
LOOK = MessengerLook(
    light=ChatColours(
        ground="#cfdcb5",
        bubble="#ffffff",
        text="#000000",
        link="#1a6fb0",
        button="#55734d",
        button_text="#ffffff",
        button_primary="#1d6fb8",
        button_success="#23783c",
        button_danger="#c2352b",
        button_styled_text="#ffffff",
    ),
    dark=ChatColours(
        ground="#0e1621",
        bubble="#182533",
        text="#f5f5f5",
        link="#6ab3f3",
        button="#2b3a4a",
        button_text="#ffffff",
        button_primary="#2a6fad",
        button_success="#2c7a43",
        button_danger="#b8382f",
        button_styled_text="#ffffff",
    ),
)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "telegram",
            TelegramSettings,
            TelegramChannel,
            operator_settings=frozenset({"base_url", "login_url", "makes_bots", "proxy"}),
            title="Telegram",
            mark=MARK,
            look=LOOK,
        )
    ]
