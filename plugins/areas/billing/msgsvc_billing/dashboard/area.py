"""The area's pages, and the labels that both kinds of them need."""

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
    """The labels of operations; those of other plugins have only their name."""
    return {
        "auth.confirmed": _("Sign-ins"),
        "message.sent": _("Messages"),
        "otp.send": _("One-time codes"),
        "broadcast.message": _("Broadcasts"),
        "broadcast.settlement": _("Broadcasts, adjusted"),
        "ticket.reply": _("Answers to customers"),
        "form.submission": _("Form submissions"),
        GRANTED: _("Monthly credits"),
        EXPIRED: _("Carried over from last month"),
        PLAN_CHANGED: _("Plan change"),
        PACK_GRANTED: _("Credit pack"),
        PACK_WITHDRAWN: _("Credits withdrawn"),
    }
