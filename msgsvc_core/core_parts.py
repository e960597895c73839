"""The core's own declarations, collected from its packages: events, retention, encrypted columns."""

from msgsvc_core.channels import retention as channels
from msgsvc_core.channels.project_channels.service import SEALED as CHANNEL_SETTINGS
from msgsvc_core.channels.reception_models import ReceptionInterrupted, ReceptionRecovered
from msgsvc_core.channels.states import ChannelRecovered, ChannelStopped, ChannelUnavailable
from msgsvc_core.config.settings import Settings
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import retention as events
from msgsvc_core.events.contract import EventSpec
from msgsvc_core.events.tracked import EventTracked
from msgsvc_core.http.idempotency import retention_rule as idempotency_retention
from msgsvc_core.limits.stored import RETENTION as LIMIT_HITS
from msgsvc_core.members.links import RETENTION as MEMBER_LINKS
from msgsvc_core.messages.models import (
    BatchCompleted,
    ButtonClicked,
    DeliveryFailed,
    DeliverySuccess,
)
from msgsvc_core.security import key_canary
from msgsvc_core.subscribers.links import RETENTION as SUBSCRIPTION_LINKS
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

#: Columns with long-lived encrypted values of the core: see `SealedColumn`.
CORE_SEALED = (
    CHANNEL_SETTINGS,
    key_canary.SEALED,
)


def retention_rules(settings: Settings) -> list[RetentionRule]:
    """How long rows of the core's tables are kept."""
    limits = settings.limits
    return [
        *channels.retention_rules(answer_hours=limits.answer_hours),
        idempotency_retention(hours=limits.idempotency_hours),
        events.retention_rule(event_days=limits.event_days),
        SUBSCRIPTION_LINKS,
        MEMBER_LINKS,
        LIMIT_HITS,
    ]
