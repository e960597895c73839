"""The events of scheduling."""

from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_scheduling.models import ScheduledId
from msgsvc_scheduling.recurring import RecurringId

SENT, FAILED, SKIPPED = "scheduled.sent", "scheduled.failed", "scheduled.skipped"
RECURRING_SENT = "recurring.sent"

QueuedMessageId = Annotated[
    str | None,
    Field(
        description="The message that was queued; absent for an audience.",
        examples=[examples.MESSAGE_ID],
    ),
]
StartedJobId = Annotated[
    str | None,
    Field(
        description="The broadcast that was started; absent for one subscriber.",
        examples=[examples.JOB_ID],
    ),
]

_SCHEDULED, _RECURRING = "sch_032aJbUsIQPd4uKr5yQ30N", "rec_032aJc1tNWcb0fJsTfuyYC"


def _examples(*shown: dict[str, Any]) -> ConfigDict:
    """Of a message to one subscriber: `job_id` is absent."""
    return ConfigDict(json_schema_extra={"examples": [*shown]})


class ScheduledSent(ResponseModel):
    """Fields of `scheduled.sent`."""

    model_config = _examples({"scheduled_id": _SCHEDULED, "message_id": examples.MESSAGE_ID})
    leave_out_none: ClassVar[frozenset[str]] = frozenset({"message_id", "job_id"})

    scheduled_id: ScheduledId
    message_id: QueuedMessageId = None
    job_id: StartedJobId = None


class RecurringSent(ResponseModel):
    """Fields of `recurring.sent`."""

    model_config = _examples({"recurring_id": _RECURRING, "message_id": examples.MESSAGE_ID})
    leave_out_none: ClassVar[frozenset[str]] = frozenset({"message_id", "job_id"})

    recurring_id: RecurringId
    message_id: QueuedMessageId = None
    job_id: StartedJobId = None


class ScheduledNotSent(ResponseModel):
    """Fields of `scheduled.failed` and `scheduled.skipped`, also for a run of a recurring message."""

    model_config = _examples(
        {"scheduled_id": _SCHEDULED, "reason": "unsubscribed"},
        {"recurring_id": _RECURRING, "reason": "missed"},
    )
    leave_out_none: ClassVar[frozenset[str]] = frozenset({"scheduled_id", "recurring_id"})

    scheduled_id: str | None = Field(
        None,
        description="The scheduled message; absent for a recurring one.",
        examples=[_SCHEDULED],
    )
    recurring_id: str | None = Field(
        None,
        description="The recurring message; absent for a scheduled one.",
        examples=[_RECURRING],
    )
    reason: str = Field(
        description="For `failed`, the code of the error; for `skipped`, `unsubscribed` or `blocked` (the"
        " recipient's state), `billing_blocked` without credits, `missed`, or `withdrawn` from a restored"
        " copy.",
        examples=["unsubscribed"],
    )


SCHEDULING_EVENTS = (
    EventSpec(
        SENT,
        "A scheduled message was queued for delivery at its time; delivery events "
        "report the outcome.",
        ScheduledSent,
        subscriber_is_optional=True,
        group="sending",
        title=lambda _, _data: _("Got a scheduled message"),
    ),
    EventSpec(
        RECURRING_SENT,
        "A run of a recurring message was queued for delivery; delivery events report the outcome.",
        RecurringSent,
        subscriber_is_optional=True,
        group="sending",
        title=lambda _, _data: _("Got a recurring message"),
    ),
    EventSpec(
        FAILED,
        "A scheduled message, or a run of a recurring one, can't be sent as requested, "
        "e.g. because its template was deleted.",
        ScheduledNotSent,
        subscriber_is_optional=True,
        group="sending",
        title=lambda _, _data: _("A scheduled message failed"),
    ),
    EventSpec(
        SKIPPED,
        "A scheduled message, or a run of a recurring one, was not sent: its recipient "
        "has unsubscribed, or its time was missed.",
        ScheduledNotSent,
        subscriber_is_optional=True,
        group="sending",
        title=lambda _, _data: _("A scheduled message was skipped"),
    ),
)
