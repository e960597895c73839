"""The area's pages, and the words that both kinds of them need."""

from msgsvc_billing.models import (
    EXPIRED,
    GRANTED,
    PACK_GRANTED,
    PACK_WITHDRAWN,
    PLAN_CHANGED,
)
from msgsvc_core.dashboard import Pages
from msgsvc_core.kernel.i18n import Translate

pages = Pages("billing", package="msgsvc_billing.dashboard")


def operations(_: Translate) -> dict[str, str]:
    """What people call operations; those of other plugins have their own name alone."""
    return {
        "auth.confirmed": _("Sign-ins"),
        "message.sent": _("Messages"),
        "otp.send": _("One-time codes"),
        "broadcast.message": _("Broadcasts"),
        "broadcast.settlement": _("Broadcasts, settled"),
        "ticket.reply": _("Answers to customers"),
        "form.submission": _("Forms sent in"),
        GRANTED: _("Credits of the month"),
        EXPIRED: _("Left over from the month before"),
        PLAN_CHANGED: _("Change of plan"),
        PACK_GRANTED: _("Pack of credits"),
        PACK_WITHDRAWN: _("Credits taken back"),
    }
