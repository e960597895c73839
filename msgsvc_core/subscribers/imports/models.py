"""An import of people: internal, and of the API."""

from typing import Annotated, Any, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Time
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.people.models import Consent

ImportStatus = Literal["running", "completed", "cancelled", "failed"]
Ended = Literal["completed", "cancelled", "failed"]

#: Why an import stopped early, as a code and as a sentence.
ImportCode = Literal["job_failed"]
ERRORS: dict[ImportCode, str] = {
    "job_failed": "The job failed repeatedly. Rows handled so far stay: import the file again."
}

#: The fields that a column can be.
COLUMNS = (
    "external_id",
    "channel",
    "address",
    "first_name",
    "language",
    "tags",
    "permissions",
    "attributes",
    "consent",
)

#: What a line of the report says of a row: it was refused; the person's own decision stays; or they have to
#: press Start before the bot can write to them.
Outcome = Literal["refused", "consent_kept", "must_start"]

ImportId = Annotated[
    str, Field(description="The import's id.", examples=["imp_032aJamqrKGYAzFHeN9gn9"])
]


@value_object
class ImportOptions:
    """What holds for all rows of an import that don't say otherwise."""

    channel: str | None
    consent: Consent
    same_bot: bool


@value_object
class PeopleImport:
    """A row. The counts are of the rows that were reached; of a dry run, of what would be done."""

    project_id: str
    import_id: str
    status: ImportStatus
    dry_run: bool
    #: Columns of the file by the field that each is, and those that are none.
    columns: dict[str, str]
    ignored: tuple[str, ...]
    options: ImportOptions
    total: int
    added: int
    updated: int
    unchanged: int
    refused: int
    must_start: int
    code: ImportCode | None
    created_at_ms: int
    finished_at_ms: int | None

    @property
    def reached(self) -> int:
        return self.added + self.updated + self.unchanged + self.refused

    @property
    def error(self) -> str | None:
        """Its code as a sentence."""
        return None if self.code is None else ERRORS[self.code]

    def progress(self) -> float:
        """The share of the rows that it has reached, 0 to 1."""
        return round(self.reached / self.total, 4) if self.total else 1.0


@value_object
class ImportRow:
    """A row of the file: its line, from 2 on, and the cells by our fields."""

    line: int
    cells: dict[str, str]


@value_object
class ImportNote:
    """A line of the report."""

    line: int
    outcome: Outcome
    reason: str


@value_object
class PreparedImport:
    """A file that was read and checked, as it is stored: its import, and the encrypted slices, each by the
    line with which it begins."""

    new: PeopleImport
    slices: tuple[tuple[int, str], ...]


class ImportParts(Query):
    """How the file is read."""

    channel: str | None = Field(
        None,
        description="The channel of rows without a column `channel`.",
        examples=["email"],
    )
    consent: Consent = Field(
        "unsubscribed",
        description="Of rows without a column `consent`. `subscribed` only if you have the consent of all of"
        " them: `unsubscribed` people get only one-time codes and sign-ins.",
    )
    same_bot: bool = Field(
        False,
        description="The file is of this very bot, with another program until now: who started it there"
        " need not start it again. Only for your own bot.",
    )
    mapping: str | None = Field(
        None,
        max_length=4000,
        description="Columns of the file by our names, as a JSON object. Other columns keep their name.",
        examples=['{"user_id": "external_id", "email": "address"}'],
    )
    dry_run: bool = Field(
        False, description="Only report what the import would do.", examples=[False]
    )


class PeopleImportAnswer(ResponseModel):
    """An import and how far it is."""

    import_id: ImportId
    status: ImportStatus = Field(
        description="`running`, `completed`, `cancelled` or `failed`, see `code`.",
        examples=["running"],
    )
    dry_run: bool = Field(description="Whether nothing is stored.", examples=[False])
    columns: dict[str, str] = Field(
        description="Columns of the file, by the field that each is.",
        examples=[{"external_id": "user_id", "address": "email"}],
    )
    ignored_columns: list[str] = Field(
        description="Columns of the file that are none of ours.", examples=[["last_order"]]
    )
    total: int = Field(description="Rows of the file.", examples=[1200])
    added: int = Field(description="People added.", examples=[400])
    updated: int = Field(description="People who were known and got something new.", examples=[60])
    unchanged: int = Field(description="People who were known, with all of it.", examples=[15])
    refused: int = Field(description="Rows that were refused: see the report.", examples=[5])
    must_start: int = Field(
        description="People added whom the bot can't write to before they start it. They are among `added`.",
        examples=[0],
    )
    progress: float = Field(description="Share of the rows reached, from 0 to 1.", examples=[0.4])
    code: ImportCode | None = Field(
        description="Why it `failed`: its job failed repeatedly (`job_failed`). Rows handled so far stay."
        " Null if it did not fail.",
        examples=[None],
    )
    error: str | None = Field(
        description="Why it `failed`, for people; null if it did not.", examples=[None]
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    finished_at: Time | None = Field(description="When it ended; null before.", examples=[None])

    @classmethod
    def of(cls, found: PeopleImport) -> "PeopleImportAnswer":
        return cls(**shown_fields(found))


class ImportFinished(ResponseModel):
    """Fields of `import.finished`."""

    import_id: ImportId
    status: Ended = Field(
        description="`completed`, `cancelled` by a request, or `failed`, see `code`.",
        examples=["completed"],
    )
    dry_run: bool = Field(description="Whether nothing was stored.", examples=[False])
    total: int = Field(description="Rows of the file.", examples=[1200])
    added: int = Field(description="People added.", examples=[400])
    updated: int = Field(description="People who were known and got something new.", examples=[60])
    unchanged: int = Field(description="People who were known, with all of it.", examples=[735])
    refused: int = Field(description="Rows that were refused: see the report.", examples=[5])
    must_start: int = Field(
        description="People added whom the bot can't write to before they start it. They are among `added`.",
        examples=[0],
    )
    code: ImportCode | None = Field(
        description="Why it `failed`, for programs; null if it did not.", examples=[None]
    )
    error: str | None = Field(
        description="Why it `failed`, for people; null if it did not.", examples=[None]
    )


class PeopleImportList(ResponseModel):
    """A page of imports, newest first."""

    data: list[PeopleImportAnswer] = Field(description="The page's imports.")
    next_cursor: NextCursor


def shown_fields(found: PeopleImport) -> dict[str, Any]:
    return {
        "import_id": found.import_id,
        "status": found.status,
        "dry_run": found.dry_run,
        "columns": found.columns,
        "ignored_columns": list(found.ignored),
        "total": found.total,
        "added": found.added,
        "updated": found.updated,
        "unchanged": found.unchanged,
        "refused": found.refused,
        "must_start": found.must_start,
        "progress": found.progress(),
        "code": found.code,
        "error": found.error,
        "created_at": to_rfc3339(found.created_at_ms),
        "finished_at": optional_rfc3339(found.finished_at_ms),
    }
