"""Models of bulk actions."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Time
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import SubscriberFilters, TagName

#: Subscribers that a request may name; to more the filters lead.
MOST_NAMED = 1000

Action = Literal["add_tag", "remove_tag", "erase"]

#: `collecting` writes down whom it is about; an erasure is then `waiting` for its confirmation.
BulkStatus = Literal["collecting", "waiting", "running", "completed", "cancelled", "failed"]

#: Why one ended before its end.
BulkError = Literal["too_many", "tag_deleted", "job_failed"]

#: Those that are not over.
OPEN: tuple[BulkStatus, ...] = ("collecting", "waiting", "running")

BulkActionId = Annotated[
    str, Field(description="The bulk action's id.", examples=[examples.BULK_ACTION_ID])
]

WHAT = "`add_tag`, `remove_tag`, or `erase`, which deletes the subscribers with all their data."
WHICH_TAG = "The tag of `add_tag`, created if needed, and `remove_tag`; null for `erase`."


@value_object
class BulkAction:
    """A row. `total` are the subscribers it is about, as far as they are collected; those that it is yet to
    reach are neither in `done` nor in `failed`."""

    project_id: str
    bulk_action_id: str
    action: Action
    #: The tag's permanent id.
    tag_id: str | None
    #: Filters as JSON, of which `tag` is a tag's id; None if the subscribers were named.
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
    #: The tag's name; None once it is deleted, as without one.
    tag: str | None = None

    @property
    def reached(self) -> int:
        """How many it has reached, in the order in which they were collected."""
        return self.done + self.failed

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    def progress(self) -> float:
        """The share of the subscribers that it has reached, 0 to 1."""
        if self.status == "completed":
            return 1.0
        return round(self.reached / self.total, 4) if self.total else 0.0


class BulkActionBody(RequestModel):
    """What is done with whom: `all`, `filters` or `subscriber_ids`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "add_tag", "tag": examples.TAG, "filters": {"lang": "en"}},
                {"action": "erase", "subscriber_ids": [examples.SUBSCRIBER_ID]},
            ]
        }
    )

    action: Action = Field(description=WHAT, examples=["add_tag"])
    tag: TagName | None = Field(
        None,
        description="The tag of `add_tag`, created if needed, or `remove_tag`.",
        examples=[examples.TAG],
    )
    all: bool = Field(False, description="All subscribers of the project, of any status.")
    filters: SubscriberFilters | None = Field(
        None,
        description="Those whom `GET /v1/subscribers` lists with these filters, at least one.",
        examples=[{"lang": "en"}],
    )
    subscriber_ids: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_NAMED,
        description="Their ids. Those who don't exist count as `failed`.",
        examples=[[examples.SUBSCRIBER_ID]],
    )


class ConfirmBody(RequestModel):
    """How many are erased, as a proof that somebody looked."""

    total: int = Field(
        description="The bulk action's `total`; another number is refused.", examples=[1200]
    )


class BulkActionAnswer(ResponseModel):
    """A bulk action and how far it is. At the end of one that is not cancelled, `total` is the sum of `done`
    and `failed`."""

    bulk_action_id: BulkActionId
    action: Action = Field(description=WHAT, examples=["add_tag"])
    tag: str | None = Field(description=WHICH_TAG, examples=[examples.TAG])
    status: BulkStatus = Field(
        description="`collecting` the subscribers; `waiting` for the confirmation of an erasure; `running`;"
        " `completed`, `cancelled` or `failed`, see `error`.",
        examples=["running"],
    )
    total: int = Field(
        description="Subscribers it is about; grows while `collecting`.", examples=[1200]
    )
    done: int = Field(
        description="Subscribers for whom it is done, including those for whom nothing had to change.",
        examples=[480],
    )
    failed: int = Field(
        description="Subscribers who did not exist any more when it came to them.", examples=[0]
    )
    progress: float = Field(
        description="Share of the subscribers that it has reached, from 0 to 1.", examples=[0.4]
    )
    error: BulkError | None = Field(
        description="Why it `failed`: `too_many` subscribers match; the tag was deleted meanwhile"
        " (`tag_deleted`); or its job failed time and again (`job_failed`). What is done stays.",
        examples=[None],
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    finished_at: Time | None = Field(description="When it ended; null before.", examples=[None])

    @classmethod
    def of(cls, bulk: BulkAction) -> "BulkActionAnswer":
        return cls(
            bulk_action_id=bulk.bulk_action_id,
            action=bulk.action,
            tag=bulk.tag,
            status=bulk.status,
            total=bulk.total,
            done=bulk.done,
            failed=bulk.failed,
            progress=bulk.progress(),
            error=bulk.error,
            created_at=to_rfc3339(bulk.created_at_ms),
            finished_at=optional_rfc3339(bulk.finished_at_ms),
        )


class BulkActionList(ResponseModel):
    """A page of bulk actions, newest first."""

    data: list[BulkActionAnswer] = Field(description="The page's bulk actions.")
    next_cursor: NextCursor
