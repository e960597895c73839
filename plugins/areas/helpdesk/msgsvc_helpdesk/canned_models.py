"""Models of canned answers: internal, and of the API."""

from typing import Annotated

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Kept
from msgsvc_core.content.outgoing import Format
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.templates.models import SOURCE_LENGTH
from msgsvc_helpdesk.models import CannedKey

Title = Annotated[str, Field(max_length=100)]
Source = Annotated[Localized, visible(SOURCE_LENGTH)]


@value_object
class CannedAnswer:
    """A row; `content` is the JSON of a template's contents: text by language, and format."""

    project_id: str
    key: str
    canned_answer_id: str
    title: str
    content: str
    created_at_ms: int
    updated_at_ms: int


class CreateCannedBody(RequestModel):
    """A new canned answer."""

    key: CannedKey = Field(description="Key used in replies.")
    title: Title = Field("", description="Title shown to agents.")
    text: Source = Field(
        description='One text for all, or texts by language: `{"en": "Hi {{ name }}", "ru": ...}`.'
    )
    format: Format = "plain"


class UpdateCannedBody(RequestModel):
    """What is to change; what is left out stays."""

    title: Kept[Title] = None
    text: Kept[Source] = None
    format: Kept[Format] = None


class CannedAnswerAnswer(ResponseModel):
    """A canned answer; `variables` are those that it uses, in the order in which they come first."""

    key: str
    canned_answer_id: str
    title: str
    text: Localized
    format: Format
    variables: list[str]
    required_variables: list[str]
    created_at: str
    updated_at: str

    @classmethod
    def of(
        cls,
        row: CannedAnswer,
        text: Localized,
        text_format: Format,
        variables: list[str],
        required: list[str],
    ) -> "CannedAnswerAnswer":
        return cls(
            key=row.key,
            canned_answer_id=row.canned_answer_id,
            title=row.title,
            text=text,
            format=text_format,
            variables=variables,
            required_variables=required,
            created_at=to_rfc3339(row.created_at_ms),
            updated_at=to_rfc3339(row.updated_at_ms),
        )


class CannedAnswerList(ResponseModel):
    """A page of canned answers, newest first."""

    data: list[CannedAnswerAnswer]
    next_cursor: str | None
