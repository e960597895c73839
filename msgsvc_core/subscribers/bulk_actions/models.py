"""Requests and answers of bulk actions on subscribers."""

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Time
from msgsvc_core.bulk_actions.models import (
    MOST_NAMED,
    BulkAction,
    BulkActionId,
    ShownStatus,
    shown_fields,
)
from msgsvc_core.subscribers.models import SubscriberFilters, TagName

Action = Literal["add_tag", "remove_tag", "erase"]

#: Why one ended before its end.
SubscribersError = Literal["too_many", "tag_deleted", "job_failed"]

#: Sentences for the errors of this kind only.
ERRORS: Mapping[str, str] = {"tag_deleted": "The tag was deleted in the meantime."}

WHAT = "`add_tag`, `remove_tag`, or `erase`, which deletes the subscribers with all their data."
WHICH_TAG = "The tag of `add_tag`, created if needed, and `remove_tag`; null for `erase`."


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
    """A bulk action and its progress. `processed` of a completed one is its `total`."""

    bulk_action_id: BulkActionId
    action: Action = Field(description=WHAT, examples=["add_tag"])
    tag: str | None = Field(description=WHICH_TAG, examples=[examples.TAG])
    status: ShownStatus = Field(
        description="`pending` until an erasure is confirmed; `running`; `completed`, `cancelled` or"
        " `failed`, see `code`.",
        examples=["running"],
    )
    total: int | None = Field(
        description="Subscribers it is about; null while they are counted.", examples=[1200]
    )
    processed: int = Field(
        description="Subscribers handled so far, including unchanged and `failed` ones.",
        examples=[480],
    )
    failed: int = Field(
        description="Subscribers who no longer existed when their turn came.", examples=[0]
    )
    progress: float = Field(
        description="Share of the subscribers that it has reached, from 0 to 1.", examples=[0.4]
    )
    code: SubscribersError | None = Field(
        description="Why it `failed`: `too_many` subscribers match, the tag was deleted (`tag_deleted`), or"
        " its job failed repeatedly (`job_failed`). Changes so far stay. Null if it did not fail.",
        examples=[None],
    )
    error: str | None = Field(
        description="Why it `failed`, for people; null if it did not.", examples=[None]
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    finished_at: Time | None = Field(description="When it ended; null before.", examples=[None])

    @classmethod
    def of(cls, bulk: BulkAction) -> "BulkActionAnswer":
        return cls(**shown_fields(bulk, ERRORS), tag=bulk.label)


class BulkActionList(ResponseModel):
    """A page of bulk actions, newest first."""

    data: list[BulkActionAnswer] = Field(description="The page's bulk actions.")
    next_cursor: NextCursor
