"""The core's own declarations: events, and retention of old rows."""

from msgsvc_core.channels.reception_models import ReceptionInterrupted, ReceptionRecovered
from msgsvc_core.channels.states import ChannelRecovered, ChannelStopped, ChannelUnavailable
from msgsvc_core.config.settings import Settings
from msgsvc_core.events.contract import EventSpec
from msgsvc_core.events.tracked import EventTracked
from msgsvc_core.jobs.retention import RetentionRule
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

#: Hours for which ids of updates are kept; Telegram keeps an unfetched update for 24.
UPDATE_HOURS = 48

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS

#: Tables whose rows mean nothing after their `expires_at_ms`.
ENDING = (
    "core_links",
    "core_member_links",
    "core_start_codes",
    "core_limit_hits",
)


def retention_rules(settings: Settings) -> list[RetentionRule]:
    """How long rows of the core's tables are kept."""
    limits = settings.limits
    return [
        RetentionRule("core_updates", "received_at_ms", UPDATE_HOURS * HOUR_MS),
        RetentionRule("core_offers", "asked_at_ms", limits.answer_hours * HOUR_MS),
        RetentionRule("core_idempotency", "created_at_ms", limits.idempotency_hours * HOUR_MS),
        RetentionRule("core_events", "occurred_at_ms", limits.event_days * DAY_MS),
        *(RetentionRule(table, "expires_at_ms") for table in ENDING),
    ]
