"""Labels of sign-in statuses, and of what sign-ins prove."""

from msgsvc_core.channels import Identity
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


def identities(_: Translate) -> list[tuple[Identity, str]]:
    """What a sign-in may have to prove, with its label."""
    return [
        ("account", _("An account on the messenger")),
        ("phone", _("A phone number")),
        ("mailbox", _("A mailbox")),
        ("homeserver", _("An account on a homeserver (Matrix)")),
    ]
