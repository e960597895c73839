"""Requests and answers of bulk actions on subscribers."""

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.bulk_actions.models import MOST_NAMED, BulkAction, BulkActionAnswer
from msgsvc_core.subscribers.models import SubscriberFilters, TagName

Action = Literal["add_tag", "remove_tag", "erase"]

#: Sentences for the errors of this kind only.
ERRORS: Mapping[str, str] = {"tag_deleted": "The tag was deleted in the meantime."}

WHAT = "`add_tag`, `remove_tag`, or `erase`, which deletes the subscribers with all their data."


class StartBulkActionBody(RequestModel):
    """A change, and the subscribers it applies to: `all`, `filters` or `subscriber_ids`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "add_tag", "value": examples.TAG, "filters": {"lang": "en"}},
                {"action": "erase", "subscriber_ids": [examples.SUBSCRIBER_ID]},
            ]
        }
    )

    action: Action = Field(description=WHAT, examples=["add_tag"])
    value: TagName | None = Field(
        None,
        description="The tag of `add_tag`, created if needed, or `remove_tag`; null for `erase`.",
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


class ConfirmBulkActionBody(RequestModel):
    """How many are erased, as a proof that somebody looked."""

    total: int = Field(
        description="The bulk action's `total`; another number is refused.", examples=[1200]
    )


def shown(bulk: BulkAction) -> BulkActionAnswer:
    """The bulk action in the API, with the name of its tag."""
    return BulkActionAnswer.of(bulk, bulk.label, ERRORS)
