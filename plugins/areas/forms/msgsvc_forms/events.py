"""The event that the plugin emits."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_forms.models import GivenAnswer, Source

SUBMITTED = "form.submitted"


class Submitted(ResponseModel):
    """Fields of `form.submitted`."""

    form_id: str
    form_version: int
    submission_id: str
    answers: list[GivenAnswer] = Field(description="In the order of the questions.")
    source: Source


FORM_EVENTS = (
    EventSpec(
        SUBMITTED,
        "A form was submitted, on a web site or in the messenger. Not emitted for spam.",
        Submitted,
    ),
)
