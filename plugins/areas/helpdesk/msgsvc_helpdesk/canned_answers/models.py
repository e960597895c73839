"""Models of canned answers: internal, and of the API."""

from typing import Annotated

from pydantic import ConfigDict, Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Kept, UpdatedAt
from msgsvc_core.content.outgoing import Format
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.templates.models import SOURCE_LENGTH
from msgsvc_helpdesk.models import CannedKey

Title = Annotated[str, Field(max_length=100, examples=["Delivery times"])]
Source = Annotated[
    Localized,
    visible(SOURCE_LENGTH),
    Field(examples=["Hi {{ name }}, we deliver within {{ days }} days."]),
]

#: What these fields mean, in bodies and responses alike.
_KEY = "What replies name it by; unique in the project."
CannedAnswerKey = Annotated[str, Field(description=_KEY, examples=["delivery"])]
_TITLE = "What agents see in the list; null for the key."
_TEXT = "One text for all, or texts by language, with variables as in templates."
_FORMAT = "How `text` is marked up."


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


class CreateCannedAnswerBody(RequestModel):
    """A new canned answer."""

    key: CannedKey = Field(description=_KEY)
    title: Title | None = Field(None, description=_TITLE)
    text: Source = Field(description=_TEXT)
    format: Format = Field("plain", description=_FORMAT)


class UpdateCannedAnswerBody(RequestModel):
    """Changes of a canned answer; omitted fields stay unchanged, and null removes the title."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "When we deliver"}]})

    title: Title | None = Field(None, description=_TITLE)
    text: Kept[Source] = Field(None, description=_TEXT)
    format: Kept[Format] = Field(None, description=_FORMAT)


class CannedAnswerAnswer(ResponseModel):
    """A canned answer."""

    key: CannedAnswerKey
    canned_answer_id: str = Field(
        description="Its id, which does not change.", examples=["can_032aJf2zVl9Dxn30jQKjfj"]
    )
    title: str | None = Field(description=_TITLE, examples=["Delivery times"])
    text: Localized = Field(
        description=_TEXT, examples=["Hi {{ name }}, we deliver within {{ days }} days."]
    )
    format: Format = Field(description=_FORMAT)
    variables: list[str] = Field(
        description="The variables that `text` uses, in the order in which they come first.",
        examples=[["name", "days"]],
    )
    required_variables: list[str] = Field(
        description="Of these, the ones without a default, which a reply has to give.",
        examples=[["name", "days"]],
    )
    created_at: CreatedAt
    updated_at: UpdatedAt

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
            title=row.title or None,
            text=text,
            format=text_format,
            variables=variables,
            required_variables=required,
            created_at=to_rfc3339(row.created_at_ms),
            updated_at=to_rfc3339(row.updated_at_ms),
        )


class CannedAnswerList(ResponseModel):
    """A page of canned answers, newest first."""

    data: list[CannedAnswerAnswer] = Field(description="The canned answers of this page.")
    next_cursor: NextCursor
