"""The event that the plugin emits."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_forms.models import (
    FormId,
    FormVersion,
    GivenAnswer,
    SubmissionId,
    SubmissionSource,
)

SUBMITTED = "form.submitted"


class Submitted(ResponseModel):
    """Fields of `form.submitted`."""

    form_id: FormId
    form_version: FormVersion
    submission_id: SubmissionId
    answers: list[GivenAnswer] = Field(
        description="In the order of the questions; those without an answer are left out."
    )
    source: SubmissionSource


FORM_EVENTS = (
    EventSpec(
        SUBMITTED,
        "A form was submitted, on a web site or in the messenger. Not emitted for spam.",
        Submitted,
        subscriber_is_optional=True,
        group="intake",
        title=lambda _, _data: _("Sent a form"),
    ),
)
