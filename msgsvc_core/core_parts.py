"""The core's own declarations, collected from its packages: events, retention, encrypted columns,
columns that are not copied."""

from msgsvc_core.bulk_actions.engine import FINISHED
from msgsvc_core.bulk_actions.engine import RETENTION as BULK_ACTIONS
from msgsvc_core.bulk_actions.models import BulkActionFinished
from msgsvc_core.bulk_actions.personal_data import PERSONAL_DATA as OF_BULK
from msgsvc_core.channels import retention as channels
from msgsvc_core.channels.linked_buttons import SEALED as BUTTON_PAGES
from msgsvc_core.channels.offers import SEALED as CHANNEL_QUESTIONS
from msgsvc_core.channels.personal_data import PERSONAL_DATA as OF_CHANNELS
from msgsvc_core.channels.project_channels.models import ChannelRequestFinished
from msgsvc_core.channels.project_channels.requests import FINISHED as CHANNEL_REQUEST_FINISHED
from msgsvc_core.channels.project_channels.service import SEALED as CHANNEL_SETTINGS
from msgsvc_core.channels.reception_models import ReceptionInterrupted, ReceptionRecovered
from msgsvc_core.channels.states import ChannelRecovered, ChannelStopped, ChannelUnavailable
from msgsvc_core.config.settings import Settings
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import retention as events
from msgsvc_core.events.contract import EventSpec
from msgsvc_core.events.personal_data import PERSONAL_DATA as OF_EVENTS
from msgsvc_core.events.tracked import EventTracked
from msgsvc_core.files.fetching import SEALED as FILE_SOURCES
from msgsvc_core.files.personal_data import PERSONAL_DATA as OF_FILES
from msgsvc_core.http.idempotency import SEALED as STORED_RESPONSES
from msgsvc_core.http.idempotency import retention_rule as idempotency_retention
from msgsvc_core.limits.stored import RETENTION as LIMIT_HITS
from msgsvc_core.mailings.personal_data import PERSONAL_DATA as OF_MAILINGS
from msgsvc_core.members.links import RETENTION as MEMBER_LINKS
from msgsvc_core.members.personal_data import PERSONAL_DATA as OF_MEMBERS
from msgsvc_core.messages.events import (
    BatchCompleted,
    ButtonClicked,
    DeliveryDelivered,
    DeliveryFailed,
    DeliveryRead,
    DeliverySuccess,
)
from msgsvc_core.messages.indexing import NOT_COPIED as MESSAGE_COLUMNS
from msgsvc_core.messages.personal_data import PERSONAL_DATA as OF_MESSAGES
from msgsvc_core.security import key_canary
from msgsvc_core.subscribers.contacts.service import SEALED as CONTACTS
from msgsvc_core.subscribers.imports.models import ImportFinished
from msgsvc_core.subscribers.imports.service import FINISHED as IMPORT_FINISHED
from msgsvc_core.subscribers.imports.service import NOTES as IMPORT_NOTES
from msgsvc_core.subscribers.imports.service import SLICES as IMPORT_SLICES
from msgsvc_core.subscribers.imports.service import retention_rule as imports_retention
from msgsvc_core.subscribers.links import RETENTION as SUBSCRIPTION_LINKS
from msgsvc_core.subscribers.models import (
    PermissionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
)
from msgsvc_core.subscribers.personal_data.declarations import PERSONAL_DATA as OF_SUBSCRIBERS

CORE_EVENTS = (
    EventSpec(
        "subscription.created",
        "A user subscribed, in any way, or resubscribed.",
        SubscriptionCreated,
        group="people",
    ),
    EventSpec(
        "subscription.deleted",
        "A user unsubscribed, blocked the bot or deleted their account.",
        SubscriptionDeleted,
        group="people",
    ),
    EventSpec(
        "subscription.permission_changed",
        "A permission was granted or revoked, by the user or through the API.",
        PermissionChanged,
        group="people",
    ),
    EventSpec(
        FINISHED,
        "A bulk action on subscribers or tickets ended, whether completed, cancelled or failed.",
        BulkActionFinished,
        of_subscriber=False,
        group="people",
    ),
    EventSpec(
        IMPORT_FINISHED,
        "An import of people ended, whether completed, cancelled or failed; also one that was only tried.",
        ImportFinished,
        of_subscriber=False,
        group="people",
    ),
    EventSpec(
        "event.tracked",
        "You reported an event by `POST /v1/events`.",
        EventTracked,
        group="developers",
    ),
    EventSpec(
        "delivery.success",
        "The messenger accepted a message.",
        DeliverySuccess,
        in_history=False,
        group="sending",
    ),
    EventSpec(
        "delivery.failed",
        "A message failed permanently.",
        DeliveryFailed,
        in_history=False,
        group="sending",
    ),
    EventSpec(
        "delivery.delivered",
        "The messenger reported that a message arrived, where it reports that.",
        DeliveryDelivered,
        in_history=False,
        group="sending",
    ),
    EventSpec(
        "delivery.read",
        "The messenger reported that a message was read, where it reports that.",
        DeliveryRead,
        in_history=False,
        group="sending",
    ),
    EventSpec(
        "batch.completed",
        "Every message of a `POST /v1/send/batch` is sent, failed or skipped.",
        BatchCompleted,
        of_subscriber=False,
        group="sending",
    ),
    EventSpec(
        "button.clicked",
        "A user pressed a button of one of your messages.",
        ButtonClicked,
        group="people",
    ),
    EventSpec(
        CHANNEL_REQUEST_FINISHED,
        "A bot that you requested was made, and is connected or could not be.",
        ChannelRequestFinished,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.stopped",
        "The messenger banned your own bot, or revoked its token. Queued messages wait.",
        ChannelStopped,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.unavailable",
        "The platform of your own bot does not respond. Queued messages wait, and are "
        "sent after it recovers.",
        ChannelUnavailable,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.recovered",
        "Your own bot works again; queued messages are sent.",
        ChannelRecovered,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.reception_interrupted",
        "Your own bot can't receive updates, e.g. because another program polls for "
        "them. Sending may still work.",
        ReceptionInterrupted,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.reception_recovered",
        "Your own bot receives updates again, including those that the messenger stored meanwhile.",
        ReceptionRecovered,
        of_subscriber=False,
        group="developers",
    ),
)

#: Columns with encrypted values of the core: see `SealedColumn`.
CORE_SEALED = (
    CHANNEL_SETTINGS,
    CONTACTS,
    IMPORT_SLICES,
    IMPORT_NOTES,
    key_canary.SEALED,
    *CHANNEL_QUESTIONS,
    BUTTON_PAGES,
    FILE_SOURCES,
    STORED_RESPONSES,
)


#: What the core stores about a subscriber.
CORE_PERSONAL_DATA: tuple[PersonalData, ...] = (
    *OF_SUBSCRIBERS,
    *OF_CHANNELS,
    *OF_MESSAGES,
    *OF_MAILINGS,
    *OF_EVENTS,
    *OF_FILES,
    *OF_MEMBERS,
    *OF_BULK,
)

#: Columns that a copy of the database leaves out, with the reason.
CORE_NOT_COPIED = {**MESSAGE_COLUMNS}


def retention_rules(settings: Settings) -> list[RetentionRule]:
    """How long rows of the core's tables are kept."""
    limits = settings.limits
    return [
        *channels.retention_rules(
            answer_hours=limits.answer_hours, button_page_days=limits.button_page_days
        ),
        idempotency_retention(hours=limits.idempotency_hours),
        events.retention_rule(event_days=limits.event_days),
        SUBSCRIPTION_LINKS,
        BULK_ACTIONS,
        imports_retention(import_days=limits.import_days),
        MEMBER_LINKS,
        LIMIT_HITS,
    ]
