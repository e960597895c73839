"""Models of forms and submissions: internal, and of the API."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, field_serializer

from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import HttpUrl, Kept
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.kernel.json import from_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_forms.answers import Answers
from msgsvc_forms.definition import (
    MOST_FIELDS,
    Definition,
    Origin,
    Route,
    read_definition,
)
from msgsvc_forms.fields import FormField

#: Prefix of a deep link's payload (decision 0075).
START_PREFIX = "form_"

Source = Literal["web", "messenger"]
SpamReason = Literal["honeypot", "too_fast"]

#: What became of a route: `done`, or `failed` with the reason in `error`.
LeadStatus = Literal["done", "failed"]


class CreateFormBody(Definition):
    """A new form."""

    slug: str = Field(
        pattern=r"^[a-z0-9-]{3,48}$",
        description="Part of the link form_<slug>; can't be changed later.",
    )

    def to_definition(self) -> Definition:
        given = self.model_dump(exclude_unset=True, exclude={"slug"})
        return Definition.model_validate(given)


class UpdateFormBody(RequestModel):
    """What is to change; a field that is left out stays. Null removes what a form need not have."""

    title: Kept[Annotated[Localized, visible(200)]] = None
    description: Annotated[Localized, visible(2000)] | None = None
    thanks: Annotated[Localized, visible(1000)] | None = None
    fields: Kept[Annotated[list[FormField], Field(min_length=1, max_length=MOST_FIELDS)]] = None
    routes: Kept[list[Route]] = None
    allowed_origins: Kept[Annotated[list[Origin], Field(max_length=50)]] = None
    redirect_url: HttpUrl | None = None
    min_fill_seconds: Kept[Annotated[int, Field(ge=0, le=600)]] = None

    def changed(self, definition: Definition) -> dict[str, Any]:
        """`definition` after the change, to be validated as a whole."""
        return {
            **definition.model_dump(mode="json", exclude_unset=True),
            **self.model_dump(mode="json", exclude_unset=True),
        }


class SubmissionQuery(PageQuery):
    """Filters and paging. Spam is kept apart, and shown by `spam=true` alone."""

    spam: bool = Field(False, description="Only spam, instead of the others.")
    source: Source | None = None


class SubmissionFilters(Query):
    """Filters of the export."""

    spam: bool = Field(False, description="Only spam, instead of the others.")
    source: Source | None = None


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
class RoutingResult:
    """The result of one route of a submission; `id` is that of the created message, mailing or ticket."""

    route: int
    kind: str
    status: LeadStatus
    id: str | None = None
    error: str | None = None


@value_object
class Submission:
    """A row: `answers` and `leads` are JSON, as in the API."""

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
    def is_ticket(self) -> bool:
        """Whether a ticket was opened with it, whose its files are from then on as well."""
        leads: Sequence[Mapping[str, Any]] = from_json(self.leads)
        return any(lead["kind"] == "ticket" and lead["status"] == "done" for lead in leads)


class FormAnswer(ResponseModel):
    """A form, as its newest version has it."""

    form_id: str
    slug: str
    version: int
    title: Localized
    description: Localized | None
    thanks: Localized | None
    fields: list[FormField]
    routes: list[Route]
    allowed_origins: list[str]
    redirect_url: str | None
    min_fill_seconds: int
    url: str = Field(description="The hosted page, and the URL your own pages submit to.")
    honeypot: str = Field(description="A hidden field; submissions that fill it in are spam.")
    links: dict[str, str] = Field(description="Opens the form in the messenger, per channel.")
    qr: dict[str, str] = Field(description="The link as an SVG image, per channel; no key needed.")
    created_at: str
    updated_at: str

    @field_serializer("fields", "routes")
    def _as_given(self, parts: list[Any]) -> list[dict[str, Any]]:
        return [part.model_dump(mode="json", exclude_unset=True) for part in parts]

    @classmethod
    def of(
        cls, form: Form, *, url: str, honeypot: str, links: dict[str, str], qr: dict[str, str]
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
            routes=definition.routes,
            allowed_origins=definition.allowed_origins,
            redirect_url=definition.redirect_url,
            min_fill_seconds=definition.min_fill_seconds,
            url=url,
            honeypot=honeypot,
            links=links,
            qr=qr,
            created_at=to_rfc3339(form.created_at_ms),
            updated_at=to_rfc3339(form.updated_at_ms),
        )


class FormList(ResponseModel):
    """A page of forms, newest first."""

    data: list[FormAnswer]
    next_cursor: str | None


class GivenAnswer(ResponseModel):
    """An answer: `value` is a text, a number, true or false, a list of texts, or one of files."""

    key: str
    type: str
    value: str | int | float | bool | list[str] | list[dict[str, Any]] | None


class LeadAnswer(ResponseModel):
    """The result of a route: `id` is that of the created message, broadcast or ticket."""

    route: int = Field(description="Its number among the form's routes, from 0.")
    kind: str
    status: LeadStatus
    id: str | None
    error: str | None


class SubmissionAnswer(ResponseModel):
    """A submission."""

    submission_id: str
    form_id: str
    form_version: int
    source: Source
    subscriber_id: str | None
    lang: str
    spam: str | None = Field(description="Why it was marked as spam; null otherwise.")
    answers: list[GivenAnswer]
    routes: list[LeadAnswer]
    created_at: str

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
            routes=from_json(row.leads),
            created_at=to_rfc3339(row.created_at_ms),
        )


class SubmissionList(ResponseModel):
    """A page of submissions, newest first."""

    data: list[SubmissionAnswer]
    next_cursor: str | None
