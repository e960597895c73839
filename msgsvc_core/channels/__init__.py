"""Messengers: the contract for channel plugins, inbound dispatch and the outbound gate."""

from msgsvc_core.channels.bot_maker import BotMaker
from msgsvc_core.channels.commands import BotCommand
from msgsvc_core.channels.context import ChannelContext, MediaFile, MediaSource
from msgsvc_core.channels.contract import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    Identity,
    Pace,
    Receiving,
    WebhookHealth,
)
from msgsvc_core.channels.failures import (
    ChannelNotReady,
    DeliveryError,
    ForeignBot,
    InvalidMiniApp,
    InvalidWebhook,
    LimitReached,
    Reason,
)
from msgsvc_core.channels.inbound import Chat, Inbound, InboundContext, InboundRule
from msgsvc_core.channels.kinds import ChannelKind
from msgsvc_core.channels.look import ChatColours, MessengerLook
from msgsvc_core.channels.platform_sign_in import (
    PlatformAttempt,
    PlatformPerson,
    PlatformSignIn,
    PlatformSignInRefused,
)
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.spending import Budget, ChannelSpending
from msgsvc_core.channels.updates import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    MiniAppUser,
    Polled,
    ReceivedFile,
    Started,
    Unblocked,
    Update,
    WebhookAnswer,
    WebhookCall,
)
from msgsvc_core.content.outgoing import Button, Format, Media, MediaType, OutgoingMessage

__all__ = [
    "Blocked",
    "BotCommand",
    "BotCreated",
    "BotMaker",
    "BotProfile",
    "Budget",
    "Button",
    "ButtonPressed",
    "Capabilities",
    "Channel",
    "ChannelContext",
    "ChannelHealth",
    "ChannelIdentity",
    "ChannelKind",
    "ChannelNotReady",
    "ChannelSpending",
    "ChannelUser",
    "Channels",
    "Chat",
    "ChatColours",
    "ChatMoved",
    "DeliveryError",
    "DeliveryReported",
    "ForeignBot",
    "Format",
    "Identity",
    "Inbound",
    "InboundContext",
    "InboundRule",
    "InvalidMiniApp",
    "InvalidWebhook",
    "LimitReached",
    "Media",
    "MediaFile",
    "MediaSource",
    "MediaType",
    "MessageEdited",
    "MessageReceived",
    "MessengerLook",
    "MiniAppUser",
    "OutgoingMessage",
    "Pace",
    "PlatformAttempt",
    "PlatformPerson",
    "PlatformSignIn",
    "PlatformSignInRefused",
    "Polled",
    "Reason",
    "ReceivedFile",
    "Receiving",
    "Started",
    "Unblocked",
    "Update",
    "WebhookAnswer",
    "WebhookCall",
    "WebhookHealth",
]
