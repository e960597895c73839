"""Hook implementations of the MAX channel."""

from collections.abc import Sequence

from msgsvc_core.channels import ChannelKind, ChatColours, MessengerLook
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_max.channel import MaxChannel
from msgsvc_max.settings import OPERATOR_SETTINGS, MaxSettings

#: The letter M in a speech bubble, drawn for this plugin; it is not the messenger's logo.
MARK = (
    "M12 2.5a9.5 9.5 0 0 0-8.3 14.1L2.6 21.4l4.9-1.1A9.5 9.5 0 1 0 12 2.5zM7"
    ".9 15.6V8.4h1.7l2.4 3.5 2.4-3.5h1.7v7.2h-1.7v-4.4L12 14.5l-2.4-3.3v4.4z"
)

#: In the manner of its own themes by day and by night, with colours that are read.
LOOK = MessengerLook(
    light=ChatColours(
        ground="#e6e9f6",
        bubble="#ffffff",
        text="#14151a",
        link="#4b3fd1",
        button="#d5daf0",
        button_text="#14151a",
    ),
    dark=ChatColours(
        ground="#121317",
        bubble="#25262c",
        text="#f4f5f7",
        link="#b0a4ff",
        button="#34363f",
        button_text="#f4f5f7",
    ),
)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "max", MaxSettings, MaxChannel, OPERATOR_SETTINGS, title="MAX", mark=MARK, look=LOOK
        )
    ]
