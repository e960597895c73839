"""A bulk action of any kind, its fields in answers, and its event."""

from typing import Annotated, Any, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object

#: Things that a request may name by their ids; to more the filters lead.
MOST_NAMED = 1000

#: What bulk actions are about, as `subscribers`. Plugins have kinds of their own.
Kind = str

#: `collecting` writes down what it is about; what needs a confirmation is `waiting` for it then.
BulkStatus = Literal["collecting", "waiting", "running", "completed", "cancelled", "failed"]
Ended = Literal["completed", "cancelled", "failed"]

#: Why one ended before its end: `too_many` match, its job failed time and again (`job_failed`), or what its
#: kind says, as `tag_deleted`.
BulkError = str

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

    def progress(self) -> float:
        """The share of them that it has reached, 0 to 1."""
        if self.status == "completed":
            return 1.0
        return round(self.reached / self.total, 4) if self.total else 0.0


def shown_fields(bulk: BulkAction) -> dict[str, Any]:
    """The fields that answers have of every kind."""
    return {
        "bulk_action_id": bulk.bulk_action_id,
        "action": bulk.action,
        "status": bulk.status,
        "total": bulk.total,
        "done": bulk.done,
        "failed": bulk.failed,
        "progress": bulk.progress(),
        "error": bulk.error,
        "created_at": to_rfc3339(bulk.created_at_ms),
        "finished_at": optional_rfc3339(bulk.finished_at_ms),
    }


class BulkActionFinished(ResponseModel):
    """Fields of `bulk_action.finished`."""

    bulk_action_id: BulkActionId
    kind: Kind = Field(
        description="What it is about: `subscribers` or `tickets`.", examples=["tickets"]
    )
    action: str = Field(description="What was done, as its request named it.", examples=["close"])
    status: Ended = Field(
        description="`completed`, `cancelled` by a request, or `failed`, see `error`.",
        examples=["completed"],
    )
    total: int = Field(
        description="How many it is about, as far as they were collected.", examples=[40]
    )
    done: int = Field(
        description="For how many it is done, including those where nothing had to change.",
        examples=[39],
    )
    failed: int = Field(
        description="For how many it could not be done, e.g. because they were deleted meanwhile.",
        examples=[1],
    )
    error: BulkError | None = Field(
        description="Why it `failed`, as the bulk action says it; null if it did not.",
        examples=[None],
    )
