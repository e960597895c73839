"""Labels of code statuses."""

from msgsvc_core.kernel.i18n import Translate

#: How the states are coloured, beside their word.
TONES = {
    "pending": "info",
    "sent": "info",
    "verified": "good",
    "expired": "quiet",
    "max_attempts_reached": "bad",
    "superseded": "quiet",
}


def statuses(_: Translate) -> dict[str, str]:
    """The word for each state."""
    return {
        "pending": _("Sending"),
        "sent": _("Sent"),
        "verified": _("Verified"),
        "expired": _("Expired"),
        "max_attempts_reached": _("Too many wrong attempts"),
        "superseded": _("Replaced"),
    }
