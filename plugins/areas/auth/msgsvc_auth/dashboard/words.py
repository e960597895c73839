"""Labels of sign-in statuses."""

from msgsvc_core.kernel.i18n import Translate

#: How the states are coloured, beside their word.
TONES = {
    "pending": "info",
    "confirmed": "good",
    "consumed": "good",
    "denied": "warn",
    "expired": "quiet",
}


def statuses(_: Translate) -> dict[str, str]:
    """The label of each status."""
    return {
        "pending": _("Waiting for confirmation"),
        "confirmed": _("Confirmed"),
        "consumed": _("Signed in"),
        "denied": _("Declined"),
        "expired": _("Expired"),
    }
