"""Labels of senders, and of the statuses of messages."""

from msgsvc_core.kernel.i18n import Translate
from msgsvc_gateway.models import Sender


def senders(_: Translate) -> dict[Sender, str]:
    """The label of each sender: products have one name in all languages."""
    return {
        "zitadel": "ZITADEL",
        "logto": "Logto",
        "novu": "Novu",
        "supabase": "Supabase",
        "generic": _("Another program"),
    }


def paths(_: Translate) -> list[tuple[str, str]]:
    """The fields of a generic sender that may have a path, with their labels."""
    return [
        ("to", _("Path of the recipient")),
        ("code", _("Path of the code")),
        ("text", _("Path of the text")),
        ("link", _("Path of the link")),
        ("purpose", _("Path of the purpose")),
        ("lang", _("Path of the language")),
        ("id", _("Path of the message's ID")),
    ]


#: How the statuses are coloured, beside their word.
TONES = {"queued": "info", "sent": "good", "failed": "bad"}


def statuses(_: Translate) -> dict[str, str]:
    """The label of each status."""
    return {"queued": _("Sending"), "sent": _("Sent"), "failed": _("Failed")}


def not_sent(_: Translate, reason: str) -> str:
    """Why no messenger took a message."""
    return {
        "expired": _("no channel took it in time"),
        "user_blocked_bot": _("the person has blocked the bot"),
        "chat_not_found": _("the chat no longer exists"),
        "bot_banned": _("the messenger rejects the bot"),
        "invalid_message": _("the messenger rejected the message"),
        "rate_limited": _("the messenger limits the bot's rate"),
        "platform_unavailable": _("the messenger did not respond"),
        "unknown": _("it is not known whether it arrived"),
    }.get(reason, reason)
