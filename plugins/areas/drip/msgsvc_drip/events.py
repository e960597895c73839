"""The events that the plugin emits."""

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_drip.models import DripId, EnrollmentId

STEP_SENT, COMPLETED = "drip.step_sent", "drip.completed"


class StepSent(ResponseModel):
    """Fields of `drip.step_sent`."""

    drip_id: DripId
    enrollment_id: EnrollmentId
    step: int = Field(description="Number of the step, from 1.", examples=[1])
    message_id: str = Field(
        description="The message that was queued.", examples=[examples.MESSAGE_ID]
    )


class Completed(ResponseModel):
    """Fields of `drip.completed`."""

    drip_id: DripId
    enrollment_id: EnrollmentId
    step: int = Field(description="Number of the campaign's last step, from 1.", examples=[3])
    message_id: str | None = Field(
        description="The message that was queued last; null if every step was skipped.",
        examples=[examples.MESSAGE_ID],
    )


DRIP_EVENTS = (
    EventSpec(
        STEP_SENT,
        "The message of a step was queued; `delivery.*` reports its outcome.",
        StepSent,
        group="sending",
        title=lambda _, _data: _("Got a campaign step"),
    ),
    EventSpec(
        COMPLETED,
        "A subscriber completed a drip campaign.",
        Completed,
        group="sending",
        title=lambda _, _data: _("Completed a campaign"),
    ),
)
