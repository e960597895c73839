"""Labels of statuses, reasons and events."""

from collections.abc import Iterable

from msgsvc_core.bulk_actions import BulkAction
from msgsvc_core.events import Event, Events
from msgsvc_core.kernel.i18n import Translate, titled
from msgsvc_core.subscribers.models import SOURCE_TITLES

#: Counts of a list stop here: "1,000+" says as much as an exact number, and takes no walk.
MOST_COUNTED = 1000


def subscriber_status(_: Translate, status: str) -> tuple[str, str]:
    """Its label and the tone of its badge."""
    return {
        "active": (_("Subscribed"), "good"),
        "unsubscribed": (_("Unsubscribed"), "quiet"),
        "blocked": (_("Blocked the bot"), "bad"),
    }.get(status, (status, "quiet"))


def message_status(_: Translate, status: str) -> tuple[str, str]:
    """Its label and the tone of its badge."""
    return {
        "queued": (_("Waiting"), "info"),
        "sending": (_("Being sent"), "info"),
        "sent": (_("Sent"), "good"),
        "failed": (_("Failed"), "bad"),
        "skipped": (_("Skipped"), "quiet"),
        "unknown": (_("Unknown"), "warn"),
    }.get(status, (status, "quiet"))


def reason(_: Translate, name: str) -> tuple[str, str]:
    """Why a message was not delivered, and what to do about it."""
    return {
        "user_blocked_bot": (
            _("Blocked the bot"),
            _(
                "The subscriber is now unsubscribed. Only they can subscribe again, by starting "
                "the bot or opening a subscription link."
            ),
        ),
        "chat_not_found": (
            _("Chat no longer exists"),
            _("The person has left this messenger. Use another channel."),
        ),
        "bot_banned": (
            _("The messenger rejects the bot"),
            _("Check the channel: the token was revoked or the bot was banned."),
        ),
        "invalid_message": (
            _("The messenger rejected the message"),
            _("See the messenger's answer below, fix the text, buttons or file, and send again."),
        ),
        "rate_limited": (
            _("Rate limited"),
            _("All attempts failed. Send again later; use a broadcast for large numbers."),
        ),
        "platform_unavailable": (
            _("The messenger did not respond"),
            _("All attempts failed. Send again when the messenger is back."),
        ),
        "unknown": (
            _("Delivery unknown"),
            _(
                "The connection broke during sending. The service does not resend automatically; "
                "ask the person, or resend if a duplicate does no harm."
            ),
        ),
    }.get(name) or (_skipped(_, name), "")


def _skipped(_: Translate, name: str) -> str:
    """Why a message was not sent, although nothing failed."""
    return {
        "expired": _("Expired before it could be sent"),
        "cancelled": _("Cancelled before it was sent"),
        "recipient_changed": _("Its recipient is another person or uses another bot now"),
        "no_subscriber": _("The person is no longer a subscriber"),
        "unsubscribed": _.pgettext("step", "Unsubscribed"),
        "blocked": _("The person blocked the bot"),
        "no_permission": _("Permission not granted"),
        "channel_removed": _("The channel was removed"),
        "channel_stopped": _("The bot is stopped"),
        "outside_hours": _("Outside the hours of the step"),
    }.get(name, name)


def waits_for(_: Translate, name: str) -> str:
    """What a message with a route waits for."""
    return {
        "delivered": _(
            "Sent; the next channel is tried unless it is reported as delivered in time."
        ),
        "read": _("Sent; the next channel is tried unless it is reported as read in time."),
        "answered": _("Sent; the next channel is tried unless the person answers in time."),
    }.get(name, name)


def step_reason(_: Translate, name: str) -> str:
    """Why a step of a route failed, or was passed over."""
    return {
        "no_subscriber": _("Not on this channel"),
        "not_in_time": _("Not sent in time"),
    }.get(name) or reason(_, name)[0]


#: Fields of events that say more than that something happened, in the order in which they are shown.
TOLD = (
    "name",
    "url",
    "permission",
    "text",
    "reason",
    "source",
    "status",
    "rating",
    "form",
    "slug",
    "state",
)


def event_detail(_: Translate, events: Events, event: Event) -> str:
    """What its owner declares as its detail, else the most telling of its fields, short."""
    declared = events.detail(_, event)
    if declared is not None:
        return declared
    if event.name == "subscription.created":
        return source(_, str(event.data.get("source", "")))
    if event.name == "subscription.deleted":
        name = str(event.data.get("reason", ""))
        return leaving_reason(_, name) or name
    found = [
        _told(_, name, str(event.data[name]))
        for name in TOLD
        if isinstance(event.data.get(name), str | int)
    ]
    return " · ".join(each[:200] for each in found if each)


def _told(_: Translate, field: str, value: str) -> str:
    """The label of a value that is one of a list, else the value."""
    if field == "reason":
        return leaving_reason(_, value) or reason(_, value)[0]
    return value


def leaving_reason(_: Translate, name: str) -> str:
    """Why somebody is no longer subscribed, or a message was skipped; empty for other reasons."""
    return {
        "api": _("API"),
        "stop": _("Unsubscribed in the bot or on the page"),
        "erased": _("Data erased"),
        "missed": _("Its time was missed"),
        "unsubscribed": _("Unsubscribed"),
        "blocked": _("Blocked the bot"),
    }.get(name, "")


def pairs(first: str, values: Iterable[str]) -> list[tuple[str, str]]:
    """Options of a filter: none, labelled `first`, or one of the values."""
    return [("", first), *((value, value) for value in values)]


def statuses(_: Translate) -> list[tuple[str, str]]:
    """Statuses of subscribers, for a filter."""
    known = ("active", "unsubscribed", "blocked")
    return [("", _("All")), *((each, subscriber_status(_, each)[0]) for each in known)]


def named(_: Translate, names: Iterable[str], kind: str) -> list[tuple[str, str]]:
    """Statuses or reasons of messages, for a filter."""
    say = reason if kind == "reason" else message_status
    return [("", _("All")), *((each, say(_, each)[0]) for each in names)]


def source(_: Translate, name: str) -> str:
    """The label of a subscription's source; the name of one of another version."""
    title = SOURCE_TITLES.get(name)
    return name if title is None else titled(_, title)


def bulk_action(_: Translate, bulk: BulkAction) -> str:
    """What a bulk action does."""
    if bulk.action == "erase":
        return _("Erase subscribers")
    tag = bulk.label or "–"
    if bulk.action == "add_tag":
        return _("Add the tag {tag}", tag=tag)
    return _("Remove the tag {tag}", tag=tag)


def bulk_status(_: Translate, status: str) -> tuple[str, str]:
    """Its label and the tone of its badge."""
    return {
        "collecting": (_("Counting"), "info"),
        "waiting": (_("Waiting for confirmation"), "warn"),
        "running": (_("Under way"), "info"),
        "completed": (_("Completed"), "good"),
        "cancelled": (_("Cancelled"), "quiet"),
        "failed": (_("Failed"), "bad"),
    }.get(status, (status, "quiet"))


def bulk_error(_: Translate, error: str | None) -> str:
    """Why a bulk action ended before its end; empty if it did not."""
    return {
        "too_many": _("Too many subscribers match. Narrow the filters."),
        "tag_deleted": _("The tag was deleted meanwhile."),
        "job_failed": _("It failed repeatedly. What was done stays; start it again."),
    }.get(error or "", "")
