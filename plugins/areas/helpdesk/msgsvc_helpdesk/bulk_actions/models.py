"""Requests and answers of bulk actions on tickets."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.bulk_actions.models import MOST_NAMED, BulkAction, BulkActionAnswer
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.models import TAG_LENGTH, TAG_PATTERN, TICKET_ID, TicketFilters

TicketAction = Literal["assign", "set_status", "set_priority", "add_tag", "remove_tag", "close"]

#: Sentences for the errors of this kind only.
ERRORS: Mapping[str, str] = {"assignee_gone": "The member no longer answers customers."}

#: Statuses that can be set; a snooze has an end.
SETTABLE = ("open", "pending", "closed")

WHAT = "The change to each ticket, by the rules of `PATCH /v1/tickets/{ticket_id}`."
VALUE = (
    "Of `assign` the member, or null to unassign; of `set_status` `open`, `pending` or `closed`; of"
    " `set_priority` the priority; of `add_tag` and `remove_tag` the tag. Null for `close`."
)


class StartTicketBulkActionBody(RequestModel):
    """A change, and the tickets that it applies to: `all`, `filters` or `ticket_ids`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"action": "add_tag", "value": "delivery", "filters": {"status": "open"}},
                {"action": "assign", "value": examples.MEMBER_ID, "ticket_ids": [TICKET_ID]},
                {"action": "close", "filters": {"status": "pending", "tag": "spam"}},
            ]
        }
    )

    action: TicketAction = Field(description=WHAT, examples=["add_tag"])
    value: str | None = Field(None, description=VALUE, examples=["delivery"])
    all: bool = Field(False, description="All tickets of the project, of any status.")
    filters: TicketFilters | None = Field(
        None,
        description="Those that `GET /v1/tickets` lists with these filters, at least one.",
        examples=[{"status": "open"}],
    )
    ticket_ids: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MOST_NAMED,
        description="Their ids. Those that don't exist count as `failed`.",
        examples=[[TICKET_ID]],
    )

    @model_validator(mode="after")
    def _fits(self) -> "StartTicketBulkActionBody":
        """`value` fits the action: a status, a priority, a tag, or nothing for `close`. Exactly one of
        `all`, `filters` and `ticket_ids` is given."""
        if self.action == "close" and self.value is not None:
            raise wrong_field("value", "is not of this action")
        if self.action == "set_status" and self.value not in SETTABLE:
            raise wrong_field("value", "must be open, pending or closed")
        if self.action == "set_priority" and self.value not in get_args(Priority):
            raise wrong_field("value", "must be low, normal, high or urgent")
        if self.action in {"add_tag", "remove_tag"}:
            tag = self.value or ""
            if len(tag) > TAG_LENGTH or not re.match(TAG_PATTERN, tag):
                raise wrong_field("value", "must be a tag")
        has_filters = self.filters is not None and self.filters != TicketFilters()
        if [self.all, has_filters, self.ticket_ids is not None].count(True) != 1:
            raise wrong_field("ticket_ids", "give these, `all`, or at least one filter")
        return self


def shown(bulk: BulkAction) -> BulkActionAnswer:
    """The bulk action in the API."""
    return BulkActionAnswer.of(bulk, bulk.value, ERRORS)
