"""The events that the core itself emits."""

from msgsvc_core.channels.reception_health import ReceptionInterrupted, ReceptionRecovered
from msgsvc_core.channels.states import ChannelRecovered, ChannelStopped, ChannelUnavailable
from msgsvc_core.events.contract import EventSpec
from msgsvc_core.events.tracked import EventTracked
from msgsvc_core.messages.models import (
    BatchCompleted,
    ButtonClicked,
    DeliveryFailed,
    DeliverySuccess,
)
from msgsvc_core.subscribers.models import (
    PermissionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
)

CORE_EVENTS = (
    EventSpec(
        "subscription.created",
        "Somebody subscribed, by whatever path, or came back.",
        SubscriptionCreated,
    ),
    EventSpec(
        "subscription.deleted",
        "Somebody left, blocked the bot or deleted their account.",
        SubscriptionDeleted,
    ),
    EventSpec(
        "subscription.permission_changed",
        "Somebody granted or revoked a permission, or you did by the API.",
        PermissionChanged,
    ),
    EventSpec("event.tracked", "You told of something by `POST /v1/events`.", EventTracked),
    EventSpec(
        "delivery.success", "The messenger took a message.", DeliverySuccess, in_history=False
    ),
    EventSpec(
        "delivery.failed",
        "A message could not be delivered, for good.",
        DeliveryFailed,
        in_history=False,
    ),
    EventSpec(
        "batch.completed",
        "Every message of a `POST /v1/send/batch` is sent, failed or skipped.",
        BatchCompleted,
        of_subscriber=False,
    ),
    EventSpec(
        "button.clicked", "Somebody pressed a button of one of your messages.", ButtonClicked
    ),
    EventSpec(
        "channel.stopped",
        "The messenger banned your own bot, or revoked its token. What is queued waits.",
        ChannelStopped,
        of_subscriber=False,
    ),
    EventSpec(
        "channel.unavailable",
        "The platform of your own bot does not answer. What is queued waits, and goes out afterwards.",
        ChannelUnavailable,
        of_subscriber=False,
    ),
    EventSpec(
        "channel.recovered",
        "Your own bot works again; what waited is sent.",
        ChannelRecovered,
        of_subscriber=False,
    ),
    EventSpec(
        "channel.reception_interrupted",
        "Your own bot receives nothing: another program asks for its updates, say. It may send as ever.",
        ReceptionInterrupted,
        of_subscriber=False,
    ),
    EventSpec(
        "channel.reception_recovered",
        "Your own bot receives again; what its messenger kept meanwhile comes now.",
        ReceptionRecovered,
        of_subscriber=False,
    ),
)
