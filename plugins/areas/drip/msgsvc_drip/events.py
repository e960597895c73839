"""The events that the plugin emits."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec

STEP_SENT, COMPLETED = "drip.step_sent", "drip.completed"


class StepSent(ResponseModel):
    """Fields of `drip.step_sent`."""

    drip_id: str
    enrollment_id: str
    step: int = Field(description="From 1.")
    message_id: str


class Completed(ResponseModel):
    """Fields of `drip.completed`: `step` is the chain's last, `message_id` of what was sent last."""

    drip_id: str
    enrollment_id: str
    step: int = Field(description="From 1.")
    message_id: str | None = Field(description="Null where the conditions of all steps failed.")


DRIP_EVENTS = (
    EventSpec(
        STEP_SENT,
        "The message of a step was queued; `delivery.*` reports its outcome.",
        StepSent,
    ),
    EventSpec(COMPLETED, "A subscriber completed a drip campaign.", Completed),
)
