"""Labels of code statuses."""

from msgsvc_core.kernel.i18n import Translate

#: How the states are coloured, beside their word.
TONES = {
    "pending": "info",
    "queued": "info",
    "sent": "info",
    "failed": "bad",
    "verified": "good",
    "expired": "quiet",
    "max_attempts_reached": "bad",
    "superseded": "quiet",
}


def statuses(_: Translate) -> dict[str, str]:
    """The word for each state."""
    return {
        "pending": _("Link not opened"),
        "queued": _("Sending"),
        "sent": _("Sent"),
        "failed": _("Not delivered"),
        "verified": _("Verified"),
        "expired": _("Expired"),
        "max_attempts_reached": _("Too many wrong attempts"),
        "superseded": _("Replaced"),
    }


def not_delivered(_: Translate, reason: str) -> str:
    """Why the message with a code did not arrive."""
    return {
        "expired": _("its time was over before it was sent"),
        "user_blocked_bot": _("the person has blocked the bot"),
        "chat_not_found": _("the chat no longer exists"),
        "bot_banned": _("the messenger rejects the bot"),
        "invalid_message": _("the messenger rejected the message"),
        "rate_limited": _("the messenger limits the bot's rate"),
        "platform_unavailable": _("the messenger did not respond"),
        "unknown": _("it is not known whether it arrived"),
    }.get(reason, reason)
