"""The events of scheduling."""

from typing import ClassVar

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec

SENT, FAILED, SKIPPED = "scheduled.sent", "scheduled.failed", "scheduled.skipped"
RECURRING_SENT = "recurring.sent"


class ScheduledSent(ResponseModel):
    """Fields of `scheduled.sent`."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"message_id", "job_id"})

    scheduled_id: str
    message_id: str | None = Field(None, description="Set for a message to one subscriber.")
    job_id: str | None = Field(None, description="Set for a message to an audience.")


class RecurringSent(ResponseModel):
    """Fields of `recurring.sent`."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"message_id", "job_id"})

    recurring_id: str
    message_id: str | None = Field(None, description="Set for a message to one subscriber.")
    job_id: str | None = Field(None, description="Set for a message to an audience.")


class ScheduledNotSent(ResponseModel):
    """Fields of `scheduled.failed` and `scheduled.skipped`, also for a run of a recurring message."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"scheduled_id", "recurring_id"})

    scheduled_id: str | None = None
    recurring_id: str | None = Field(None, description="Set instead for a recurring message.")
    reason: str = Field(
        description="For `failed`, the error code; for `skipped`, `unsubscribed` or `blocked` (the"
        " recipient's state), or `missed`."
    )


SCHEDULING_EVENTS = (
    EventSpec(
        SENT,
        "A scheduled message was queued for delivery at its time; delivery events "
        "report the outcome.",
        ScheduledSent,
    ),
    EventSpec(
        RECURRING_SENT,
        "A run of a recurring message was queued for delivery; delivery events report the outcome.",
        RecurringSent,
    ),
    EventSpec(
        FAILED,
        "A scheduled message, or a run of a recurring one, can't be sent as requested, "
        "e.g. because its template was deleted.",
        ScheduledNotSent,
    ),
    EventSpec(
        SKIPPED,
        "A scheduled message, or a run of a recurring one, was not sent: its recipient "
        "has unsubscribed, or its time was missed.",
        ScheduledNotSent,
    ),
)
