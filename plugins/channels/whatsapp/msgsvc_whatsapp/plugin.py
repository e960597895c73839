"""Hook implementations of the WhatsApp channel."""

from collections.abc import Sequence

from msgsvc_core.channels import ChannelKind, ChatColours, MessengerLook
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_whatsapp.channel import WhatsAppChannel
from msgsvc_whatsapp.settings import OPERATOR_SETTINGS, WhatsAppSettings

#: A phone that leans to the left, with a tick on its screen, drawn for this plugin; it is not the
#: messenger's logo.
MARK = (
    "M6.2 4.6 14 2.2a2 2 0 0 1 2.5 1.3l5 15.2a2 2 0 0 1-1.3 2.5l-7.8 2.4a2 2 0 0 1-2.5-1.3l-5-15.2a2 2 0 0 1 "
    "1.3-2.5zM7.4 7.1l3.9 12 7.1-2.2-3.9-12zm2.2 5.4 1.2-1.1 1.5 1.5 2-3.6 1.4.8-2.9 5.2z"
)

#: In the manner of its own themes by day and by night, with colours that are read. A customer receives a
#: business's messages in the lighter bubble.
LOOK = MessengerLook(
    light=ChatColours(ground="#efeae2", bubble="#ffffff", text="#111b21", link="#00704f"),
    dark=ChatColours(ground="#0b141a", bubble="#202c33", text="#e9edef", link="#53bdeb"),
    buttons="inside",
)


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [
        ChannelKind(
            "whatsapp",
            WhatsAppSettings,
            WhatsAppChannel,
            OPERATOR_SETTINGS,
            title="WhatsApp",
            mark=MARK,
            look=LOOK,
            about="WhatsApp, a business phone number on the Cloud API of Meta",
        )
    ]
