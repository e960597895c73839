"""A bulk action of any kind, its fields in answers, and its event."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Time
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object

#: Things that a request may name by their ids; to more the filters lead.
MOST_NAMED = 1000

#: What bulk actions are about, as `subscribers`. Plugins have kinds of their own.
Kind = str

#: `collecting` writes down what it is about; what needs a confirmation is `waiting` for it then.
BulkStatus = Literal["collecting", "waiting", "running", "completed", "cancelled", "failed"]

#: In the API, `collecting` is `running` without a total, and `waiting` for a confirmation `pending`.
ShownStatus = Literal["pending", "running", "completed", "cancelled", "failed"]
Ended = Literal["completed", "cancelled", "failed"]

#: Why one stopped early: `too_many` match, its job failed repeatedly (`job_failed`), or what its
#: kind says, as `tag_deleted`.
BulkError = str

#: The same as sentences, of all kinds.
ERRORS: dict[BulkError, str] = {
    "too_many": "Too many match: narrow the filters.",
    "job_failed": "The job failed repeatedly. Changes so far stay: start the action again.",
}

#: Those that are not over.
OPEN: tuple[BulkStatus, ...] = ("collecting", "waiting", "running")

BulkActionId = Annotated[
    str, Field(description="The bulk action's id.", examples=[examples.BULK_ACTION_ID])
]


@value_object
class BulkAction:
    """A row. `total` is how many it is about, as far as they are collected; those that it is yet to reach are
    neither in `done` nor in `failed`."""

    project_id: str
    bulk_action_id: str
    kind: Kind
    action: str
    #: What the action takes: a tag's id or name, a status, a member. None for an action that takes nothing.
    value: str | None
    #: Filters as JSON; None if ids were given, or once it has ended.
    filters: str | None
    status: BulkStatus
    #: The last id that was collected; None before the first.
    collected_to: str | None
    total: int
    done: int
    failed: int
    error: BulkError | None
    created_at_ms: int
    finished_at_ms: int | None
    #: What people call `value`, if it is an id; None once that is gone.
    label: str | None = None

    @property
    def reached(self) -> int:
        """How many it has reached, in the order in which they were collected."""
        return self.done + self.failed

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def shown_status(self) -> ShownStatus:
        """The status in the API."""
        if self.status == "collecting":
            return "running"
        return "pending" if self.status == "waiting" else self.status

    def progress(self) -> float:
        """The share of them that it has reached, 0 to 1."""
        if self.status == "completed":
            return 1.0
        return round(self.reached / self.total, 4) if self.total else 0.0


def shown_error(error: BulkError | None, errors: Mapping[BulkError, str]) -> str | None:
    """The sentence for an error; `errors` are those of its kind only."""
    return None if error is None else {**ERRORS, **errors}[error]


class BulkActionAnswer(ResponseModel):
    """A bulk action and its progress. `processed` of a completed one is its `total`."""

    bulk_action_id: BulkActionId
    kind: Kind = Field(
        description="What it changes: `subscribers` or `tickets`.", examples=["tickets"]
    )
    action: str = Field(description="The action that the request named.", examples=["add_tag"])
    value: str | None = Field(
        description="The tag, member, status or priority of its request; null for an action without one.",
        examples=["delivery"],
    )
    status: ShownStatus = Field(
        description="`pending` until an erasure is confirmed; `running`; `completed`, `cancelled` or"
        " `failed`, see `code`.",
        examples=["running"],
    )
    total: int | None = Field(
        description="How many it covers; null while they are counted.", examples=[1200]
    )
    processed: int = Field(
        description="How many were handled so far, including unchanged and `failed` ones.",
        examples=[480],
    )
    failed: int = Field(
        description="How many could not be changed, e.g. because they were deleted in the meantime.",
        examples=[0],
    )
    progress: float = Field(
        description="Share of them that it has reached, from 0 to 1.", examples=[0.4]
    )
    code: BulkError | None = Field(
        description="Why it `failed`: `too_many` match, its job failed repeatedly (`job_failed`), its tag was"
        " deleted (`tag_deleted`), or its member stopped answering customers (`assignee_gone`). Changes so"
        " far stay. Null if it did not fail.",
        examples=[None],
    )
    error: str | None = Field(
        description="Why it `failed`, for people; null if it did not.", examples=[None]
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    finished_at: Time | None = Field(description="When it ended; null before.", examples=[None])

    @classmethod
    def of(
        cls, bulk: BulkAction, value: str | None, errors: Mapping[BulkError, str]
    ) -> "BulkActionAnswer":
        """`value` is what people call the action's, and `errors` are sentences for those of its kind only."""
        return cls(
            bulk_action_id=bulk.bulk_action_id,
            kind=bulk.kind,
            action=bulk.action,
            value=value,
            status=bulk.shown_status,
            total=None if bulk.status == "collecting" else bulk.total,
            processed=bulk.reached,
            failed=bulk.failed,
            progress=bulk.progress(),
            code=bulk.error,
            error=shown_error(bulk.error, errors),
            created_at=to_rfc3339(bulk.created_at_ms),
            finished_at=optional_rfc3339(bulk.finished_at_ms),
        )


class BulkActionList(ResponseModel):
    """A page of bulk actions, newest first."""

    data: list[BulkActionAnswer] = Field(description="The bulk actions of this page.")
    next_cursor: NextCursor


class BulkActionFinished(ResponseModel):
    """Fields of `bulk_action.finished`."""

    bulk_action_id: BulkActionId
    kind: Kind = Field(
        description="What it changes: `subscribers` or `tickets`.", examples=["tickets"]
    )
    action: str = Field(description="The action that the request named.", examples=["close"])
    status: Ended = Field(
        description="`completed`, `cancelled` by a request, or `failed`, see `code`.",
        examples=["completed"],
    )
    total: int = Field(
        description="How many it covers, as far as they were collected.", examples=[40]
    )
    processed: int = Field(
        description="How many were handled, including those where nothing had to change, and `failed` ones.",
        examples=[40],
    )
    failed: int = Field(
        description="How many could not be changed, e.g. because they were deleted in the meantime.",
        examples=[1],
    )
    code: BulkError | None = Field(
        description="Why it `failed`, for programs; null if it did not.", examples=[None]
    )
    error: str | None = Field(
        description="Why it `failed`, for people; null if it did not.", examples=[None]
    )
