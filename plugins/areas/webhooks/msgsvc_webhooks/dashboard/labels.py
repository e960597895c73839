"""Labels of delivery statuses."""

from collections.abc import Sequence

from msgsvc_core.kernel.i18n import Translate, explained
from msgsvc_webhooks.models import Attempt, Delivery

#: How the states are coloured, beside their word.
STATUS_TONES = {"queued": "info", "delivered": "good", "failed": "bad", "cancelled": "quiet"}

#: The label and colour of a delivery.
State = tuple[str, str]


def statuses(_: Translate) -> dict[str, str]:
    """The label of each status."""
    return {
        "queued": _("Queued"),
        "delivered": _("Delivered"),
        "failed": _("Failed"),
        "cancelled": _("Cancelled"),
    }


def state_of(_: Translate, delivery: Delivery) -> State:
    """The label of its status and its colour; one that failed so far is told apart from a new one."""
    if delivery.status == "pending" and delivery.attempts:
        return _("Retrying"), "warn"
    return statuses(_)[delivery.shown_status], STATUS_TONES[delivery.shown_status]


def failure(_: Translate, attempt: Attempt) -> str:
    """Why an attempt failed, or did not get a response."""
    if attempt.failure is not None:
        return explained([attempt.failure], _)
    return attempt.error or _("No response")


def what_happened(_: Translate, delivery: Delivery, attempts: Sequence[Attempt]) -> str:
    """One sentence about the last attempt; empty if there was none."""
    if not attempts:
        return ""
    last = attempts[-1]
    tries = _.ngettext("after {count} attempt", "after {count} attempts", len(attempts))
    if last.status_code is not None:
        said = _("The receiver answered {status}", status=last.status_code)
    else:
        said = failure(_, last)
    return f"{said}, {tries}"
