"""What statuses, reasons and events are called for people."""

from collections.abc import Iterable

from msgsvc_core.events.contract import Event
from msgsvc_core.kernel.i18n import Translate

#: Counts of a list stop here: "1,000+" says as much as an exact number, and takes no walk.
MOST_COUNTED = 1000


def subscriber_status(_: Translate, status: str) -> tuple[str, str]:
    """Its name and the tone of its badge."""
    return {
        "active": (_("Subscribed"), "good"),
        "unsubscribed": (_("Unsubscribed"), "quiet"),
        "blocked": (_("Blocked the bot"), "bad"),
    }.get(status, (status, "quiet"))


def message_status(_: Translate, status: str) -> tuple[str, str]:
    """Its name and the tone of its badge."""
    return {
        "queued": (_("Waiting"), "info"),
        "sending": (_("Being sent"), "info"),
        "sent": (_("Was sent"), "good"),
        "failed": (_("Failed"), "bad"),
        "skipped": (_("Skipped"), "quiet"),
        "unknown": (_("Not known"), "warn"),
    }.get(status, (status, "quiet"))


def reason(_: Translate, name: str) -> tuple[str, str]:
    """Why a message was not delivered, and what to do about it."""
    return {
        "user_blocked_bot": (
            _("They blocked the bot"),
            _(
                "They are unsubscribed now. Only they can let the bot write again, by starting it or"
                " opening a subscription link."
            ),
        ),
        "chat_not_found": (
            _("There is no such chat any more"),
            _("The person is gone from this messenger. Write to them by another channel."),
        ),
        "bot_banned": (
            _("The messenger refuses the bot"),
            _("Look at the channel: its token was revoked, or the bot was banned."),
        ),
        "invalid_message": (
            _("The messenger refused the message"),
            _(
                "Look at what it says below, mend the text, the buttons or the file, and send it anew."
            ),
        ),
        "rate_limited": (
            _("Too many messages at once"),
            _("It was tried several times. Send it again later, and large numbers as a broadcast."),
        ),
        "platform_unavailable": (
            _("The messenger did not answer"),
            _("It was tried several times. Send it again when the messenger works."),
        ),
        "unknown": (
            _("Nobody knows whether it arrived"),
            _(
                "The connection broke while it was being sent. It is not sent a second time by itself;"
                " ask the person, or send it again if twice does no harm."
            ),
        ),
    }.get(name, (name, ""))


def event_title(_: Translate, event: Event) -> str:
    """What happened, in a few words; the name of an event that this page has no words for."""
    data = event.data
    if event.name == "subscription.permission_changed":
        given = bool(data.get("granted"))
        return _("Granted a permission") if given else _("Revoked a permission")
    return {
        "subscription.created": _("Subscribed"),
        "subscription.deleted": _("Left"),
        "event.tracked": _("You told of an event"),
        "button.clicked": _("Pressed a button"),
        "auth.completed": _("Signed in"),
        "otp.sent": _("Was sent a code"),
        "otp.verified": _("Entered the right code"),
        "otp.failed_attempt": _("Entered a wrong code"),
        "otp.max_attempts_reached": _("Entered too many wrong codes"),
        "form.submitted": _("Sent a form"),
        "ticket.created": _("Opened a ticket"),
        "ticket.replied": _("Was answered in a ticket"),
        "ticket.assigned": _("Their ticket was assigned"),
        "ticket.status_changed": _("Their ticket changed"),
        "ticket.closed": _("Their ticket was closed"),
        "ticket.csat_received": _("Rated a ticket"),
        "ticket.unanswered_24h": _("Their ticket waits for a day"),
        "drip.step_sent": _("Got a step of a chain"),
        "drip.completed": _("Finished a chain"),
        "scheduled.sent": _("Got a scheduled message"),
        "scheduled.skipped": _("A scheduled message was skipped"),
        "scheduled.failed": _("A scheduled message failed"),
        "recurring.sent": _("Got a recurring message"),
    }.get(event.name, event.name)


#: Fields of events that say more than that something happened, in the order in which they are shown.
TOLD = (
    "name",
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


def event_detail(_: Translate, event: Event) -> str:
    """The most telling of its fields, short."""
    if event.name == "subscription.created":
        return source(_, str(event.data.get("source", "")))
    found = [str(event.data[name]) for name in TOLD if isinstance(event.data.get(name), str | int)]
    return " · ".join(each[:200] for each in found if each)


def count(number: int) -> str:
    """A number of a list, counted up to one more than `MOST_COUNTED`."""
    return f"{MOST_COUNTED:,}+" if number > MOST_COUNTED else f"{number:,}"


def pairs(first: str, values: Iterable[str]) -> list[tuple[str, str]]:
    """What a filter offers: nothing, which `first` names, or one of the values."""
    return [("", first), *((value, value) for value in values)]


def statuses(_: Translate) -> list[tuple[str, str]]:
    """Those of subscribers, for a filter."""
    known = ("active", "unsubscribed", "blocked")
    return [("", _("All")), *((each, subscriber_status(_, each)[0]) for each in known)]


def named(_: Translate, names: Iterable[str], kind: str) -> list[tuple[str, str]]:
    """Statuses or reasons of messages, for a filter."""
    say = reason if kind == "reason" else message_status
    return [("", _("All")), *((each, say(_, each)[0]) for each in names)]


def source(_: Translate, name: str) -> str:
    """How somebody came to subscribe."""
    return {
        "deep_link": _("By a subscription link"),
        "mini_app": _("In a mini app"),
        "auth": _("By signing in"),
        "otp": _("By a code"),
        "form": _("By a form"),
        "helpdesk": _("By writing to the helpdesk"),
        "api": _("By the API"),
    }.get(name, name)
