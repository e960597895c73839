"""Models of forms and submissions: internal, and of the API."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import AsGiven
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, HttpUrl, Kept, UpdatedAt, Url
from msgsvc_core.content.outgoing import MediaType
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.json import from_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import StartMessages, Subscriber
from msgsvc_forms.answers import Answers
from msgsvc_forms.definition import (
    ALLOWED_ORIGINS,
    DESCRIPTION,
    EXAMPLE_FIELDS,
    EXAMPLE_RULES,
    FIELDS,
    MIN_FILL_SECONDS,
    MOST_FIELDS,
    REDIRECT_URL,
    RULES,
    THANKS,
    TITLE,
    Definition,
    Origin,
    Rule,
    read_definition,
)
from msgsvc_forms.fields import FieldType, FormField

#: Prefix of a deep link's payload (decision 0075).
START_PREFIX = "form_"

Source = Literal["web", "messenger"]
SpamReason = Literal["honeypot", "too_fast"]

#: What became of a rule: `completed`, or `failed` with the reason in `error`.
RuleStatus = Literal["completed", "failed"]

#: Fields and values of a rule's result that have another name in the database.
_STORED_RULE, _STORED_COMPLETED = "route", "done"

FormId = Annotated[
    str, Field(description="The form's id.", examples=["frm_032aJeKy4ICWDPfLAFeO9J"])
]
SubmissionId = Annotated[
    str, Field(description="The submission's id.", examples=["fsb_032aJeVyQewCYCFdzckHcQ"])
]
FormVersion = Annotated[
    int, Field(description="Version of the form that was filled in, from 1.", examples=[1])
]
SubmissionSource = Annotated[
    Source, Field(description="Whether it was filled in on the web or in a messenger.")
]

#: Filters of submissions.
SpamFilter = Annotated[bool, Field(description="Only spam, instead of the others.")]
SourceFilter = Annotated[
    Source | None,
    Field(description="Only submissions from there; by default all.", examples=["web"]),
]


class CreateFormBody(Definition):
    """A new form."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "slug": "call-back",
                    "title": "Call me back",
                    "fields": EXAMPLE_FIELDS,
                    "rules": EXAMPLE_RULES,
                    "allowed_origins": [examples.SITE_URL],
                }
            ]
        }
    )

    slug: str = Field(
        pattern=r"^[a-z0-9-]{3,48}$",
        description="Part of the messengers' links, `form_<slug>`; can't be changed later.",
        examples=["call-back"],
    )

    def to_definition(self) -> Definition:
        given = self.model_dump(exclude_unset=True, exclude={"slug"})
        return Definition.model_validate(given)


class UpdateFormBody(RequestModel):
    """Changes; omitted fields stay unchanged. Null removes an optional value."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Call me back today", "redirect_url": None}]}
    )

    title: Kept[Annotated[Localized, visible(200)]] = Field(
        None, description=TITLE, examples=["Call me back today"]
    )
    description: Annotated[Localized, visible(2000)] | None = Field(
        None, description=DESCRIPTION, examples=["We call within a working day."]
    )
    thanks: Annotated[Localized, visible(1000)] | None = Field(
        None, description=THANKS, examples=["Thank you! We will call soon."]
    )
    fields: Kept[Annotated[list[FormField], Field(min_length=1, max_length=MOST_FIELDS)]] = Field(
        None, description=FIELDS
    )
    rules: Kept[list[Rule]] = Field(None, description=RULES)
    allowed_origins: Kept[Annotated[list[Origin], Field(max_length=50)]] = Field(
        None, description=ALLOWED_ORIGINS
    )
    redirect_url: HttpUrl | None = Field(
        None, description=REDIRECT_URL, examples=[f"{examples.SITE_URL}/thanks"]
    )
    min_fill_seconds: Kept[Annotated[int, Field(ge=0, le=600)]] = Field(
        None, description=MIN_FILL_SECONDS, examples=[3]
    )

    def changed(self, definition: Definition) -> dict[str, Any]:
        """`definition` after the change, to be validated as a whole."""
        return {
            **definition.model_dump(mode="json", exclude_unset=True),
            **self.model_dump(mode="json", exclude_unset=True),
        }


class SubmissionQuery(PageQuery):
    """Filters and paging. Spam is kept apart, and shown by `spam=true` alone."""

    spam: SpamFilter = False
    source: SourceFilter = None


class SubmissionFilters(Query):
    """Filters of the export."""

    spam: SpamFilter = False
    source: SourceFilter = None


@value_object
class Form:
    """A form in one of its versions, `version`.

    `start` is the part after `form_` in deep links: the slug, unless another project used it first.
    """

    project_id: str
    form_id: str
    slug: str
    start: str
    version: int
    created_at_ms: int
    updated_at_ms: int
    content: str

    @property
    def definition(self) -> Definition:
        return read_definition(self.content)

    @property
    def payload(self) -> str:
        """The payload of its deep links."""
        return START_PREFIX + self.start


@value_object
class NewSubmission:
    """A new submission, with typed answers by key (`answers.read_answer`).

    `form` is the version that was shown. `once_key` identifies duplicates, e.g. a digest of the page's
    token: a second submission returns the first. `spam` is the reason for classifying it as spam; it is
    then stored without further effects.
    """

    form: Form
    source: Source
    answers: Answers
    lang: str
    subscriber: Subscriber | None = None
    once_key: str | None = None
    spam: SpamReason | None = None
    #: Of the files that the web sent.
    file_bytes: int = 0


@value_object
class RuleResult:
    """The result of one rule of a submission; `id` is that of the created message, mailing or ticket."""

    rule: int
    kind: str
    status: RuleStatus
    id: str | None = None
    code: str | None = None
    error: str | None = None

    def to_column(self) -> dict[str, Any]:
        status = _STORED_COMPLETED if self.status == "completed" else self.status
        return {
            _STORED_RULE: self.rule,
            "kind": self.kind,
            "status": status,
            "id": self.id,
            "code": self.code,
            "error": self.error,
        }

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "RuleResult":
        status = stored["status"]
        return cls(
            rule=stored[_STORED_RULE],
            kind=stored["kind"],
            status="completed" if status == _STORED_COMPLETED else status,
            id=stored["id"],
            code=stored.get("code"),
            error=stored.get("error"),
        )


@value_object
class Submission:
    """A row: `answers` is JSON as in the API, and `leads` is that of the rules' results."""

    project_id: str
    submission_id: str
    form_id: str
    version: int
    source: Source
    subscriber_id: str | None
    lang: str
    spam: SpamReason | None
    answers: str
    leads: str
    created_at_ms: int

    @property
    def ordered(self) -> Sequence[Mapping[str, Any]]:
        """`[{"key", "type", "value"}]` in the order of the questions."""
        found: Sequence[Mapping[str, Any]] = from_json(self.answers)
        return found

    @property
    def results(self) -> Sequence[RuleResult]:
        """What became of the form's rules, in their order."""
        return [RuleResult.read(stored) for stored in from_json(self.leads)]

    @property
    def is_ticket(self) -> bool:
        """Whether a ticket was opened with it, whose its files are from then on as well."""
        return any(one.kind == "ticket" and one.status == "completed" for one in self.results)


class FormAnswer(ResponseModel):
    """A form, as its newest version has it."""

    form_id: FormId
    slug: str = Field(description="Part of the messengers' links.", examples=["call-back"])
    version: int = Field(description="From 1; grows with each change.", examples=[1])
    title: Localized = Field(description=TITLE, examples=["Call me back"])
    description: Localized | None = Field(description=DESCRIPTION, examples=[None])
    thanks: Localized | None = Field(description=THANKS, examples=[None])
    fields: list[AsGiven[FormField]] = Field(description=FIELDS, examples=[EXAMPLE_FIELDS])
    rules: list[AsGiven[Rule]] = Field(description=RULES, examples=[EXAMPLE_RULES])
    allowed_origins: list[str] = Field(description=ALLOWED_ORIGINS, examples=[[examples.SITE_URL]])
    redirect_url: Url | None = Field(description=REDIRECT_URL, examples=[None])
    min_fill_seconds: int = Field(description=MIN_FILL_SECONDS, examples=[3])
    url: Url = Field(
        description="The hosted page, and the URL that your own pages submit to.",
        examples=[f"{examples.BASE_URL}/f/frm_032aJeKy4ICWDPfLAFeO9J"],
    )
    honeypot: str = Field(
        description="Name of a hidden input for your own pages; submissions that fill it in are spam.",
        examples=["website"],
    )
    links: dict[str, Url] = Field(
        description="Links that open the form in the messenger, by channel. Empty while no bot is ready.",
        examples=[{examples.CHANNEL: f"{examples.BOT_URL}?start=form_call-back"}],
    )
    start_messages: StartMessages = Field(None, exclude_if=lambda messages: messages is None)
    qr: dict[str, Url] = Field(
        description="QR codes of these links as SVG images, by channel; no API key needed.",
        examples=[
            {examples.CHANNEL: f"{examples.BASE_URL}/qr/{examples.CHANNEL}/form_call-back.svg"}
        ],
    )
    created_at: CreatedAt
    updated_at: UpdatedAt = Field(examples=[examples.EARLIER])

    @classmethod
    def of(
        cls,
        form: Form,
        *,
        url: str,
        honeypot: str,
        links: dict[str, str],
        start_messages: dict[str, str] | None,
        qr: dict[str, str],
    ) -> "FormAnswer":
        definition = form.definition
        return cls(
            form_id=form.form_id,
            slug=form.slug,
            version=form.version,
            title=definition.title,
            description=definition.description,
            thanks=definition.thanks,
            fields=definition.fields,
            rules=definition.rules,
            allowed_origins=definition.allowed_origins,
            redirect_url=definition.redirect_url,
            min_fill_seconds=definition.min_fill_seconds,
            url=url,
            honeypot=honeypot,
            links=links,
            start_messages=start_messages,
            qr=qr,
            created_at=to_rfc3339(form.created_at_ms),
            updated_at=to_rfc3339(form.updated_at_ms),
        )


class FormList(ResponseModel):
    """A page of forms, newest first."""

    data: list[FormAnswer] = Field(description="The forms of this page.")
    next_cursor: NextCursor


class AnsweredFile(TypedDict):
    """A file of an answer, which `GET /v1/files/{file_id}` shows."""

    file_id: Annotated[str, Field(description="Its id.", examples=[examples.FILE_ID])]
    filename: Annotated[str, Field(description="Its name.", examples=["receipt.pdf"])]
    mime_type: Annotated[str, Field(description="Its media type.", examples=["application/pdf"])]
    size: Annotated[int, Field(description="Bytes.", examples=[48213])]
    type: Annotated[MediaType, Field(description="How messengers show it.")]


class GivenAnswer(ResponseModel):
    """An answer."""

    key: str = Field(description="Key of the question.", examples=["phone"])
    type: FieldType = Field(description="Type of the question.", examples=["phone"])
    value: str | int | float | bool | list[str] | list[AnsweredFile] | None = Field(
        description="By type: a text for `text`, `email`, `phone`, `date` (YYYY-MM-DD) and `choice`; a"
        " number for `number` and `rating`; true or false for `consent`; texts for `multichoice`; files for"
        " `file`.",
        examples=["+4930123456"],
    )


class RuleResultAnswer(ResponseModel):
    """The result of a rule."""

    rule: int = Field(description="Its number among the form's rules, from 0.", examples=[0])
    kind: Literal["subscriber", "tag", "ticket", "webhook"] = Field(
        description="Where it leads, by the `kind` of its target.", examples=["ticket"]
    )
    status: RuleStatus = Field(description="Whether it could be followed.")
    id: str | None = Field(
        description="Id of the message, broadcast or ticket that was made; null for `webhook`, and if it"
        " failed.",
        examples=["tkt_032aJerz9OPYLXIWedIQEI"],
    )
    code: str | None = Field(
        description="Why it failed: the code of an error; null if it did not.", examples=[None]
    )
    error: str | None = Field(
        description="Why it failed, for people; null if it did not.", examples=[None]
    )


class SubmissionAnswer(ResponseModel):
    """A submission."""

    submission_id: SubmissionId
    form_id: FormId
    form_version: FormVersion
    source: SubmissionSource
    subscriber_id: str | None = Field(
        description="The subscriber who filled it in; null on the web.", examples=[None]
    )
    lang: str = Field(description="Language in which the form was shown.", examples=["en"])
    spam: SpamReason | None = Field(
        description="Why it was marked as spam: a hidden input was filled in, or it came too fast. Null"
        " otherwise.",
        examples=[None],
    )
    answers: list[GivenAnswer] = Field(
        description="In the order of the questions; those without an answer are left out."
    )
    rules: list[RuleResultAnswer] = Field(
        description="What became of the form's rules; empty for spam."
    )
    created_at: CreatedAt = Field(description="When it was submitted.", examples=[examples.TIME])

    @classmethod
    def of(cls, row: Submission) -> "SubmissionAnswer":
        return cls(
            submission_id=row.submission_id,
            form_id=row.form_id,
            form_version=row.version,
            source=row.source,
            subscriber_id=row.subscriber_id,
            lang=row.lang,
            spam=row.spam,
            answers=from_json(row.answers),
            rules=[RuleResultAnswer(**asdict(one)) for one in row.results],
            created_at=to_rfc3339(row.created_at_ms),
        )


class SubmissionList(ResponseModel):
    """A page of submissions, newest first."""

    data: list[SubmissionAnswer] = Field(description="The submissions of this page.")
    next_cursor: NextCursor
