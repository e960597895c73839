"""The events that the plugin emits. Those of a customer with a messenger have the subscriber's fields."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import Time
from msgsvc_core.events import EventSpec
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.models import (
    STATUS,
    AssigneeId,
    Author,
    Status,
    TicketId,
    TicketNumber,
)
from msgsvc_helpdesk.service_levels.models import TargetName

CREATED, REPLIED, STATUS_CHANGED = "ticket.created", "ticket.replied", "ticket.status_changed"
ASSIGNED, CLOSED, UNANSWERED = "ticket.assigned", "ticket.closed", "ticket.unanswered_24h"
CSAT_RECEIVED = "ticket.csat_received"
DUE_SOON, BREACHED = "ticket.sla_due_soon", "ticket.sla_breached"

#: Characters of a message that a customer's history shows.
DETAIL_LENGTH = 200


class TicketFields(ResponseModel):
    """A ticket as it is after what happened."""

    ticket_id: TicketId
    number: TicketNumber
    status: Status = Field(description=STATUS)
    priority: Priority = Field(description="How urgent it is.", examples=["normal"])
    assignee_id: AssigneeId


class Replied(TicketFields):
    """Fields of `ticket.replied`."""

    status: Status = Field(description=STATUS, examples=["pending"])
    author: Author = Field(description="Who wrote.", examples=["agent"])
    text: str = Field(description="What they wrote.", examples=["It arrives tomorrow."])


class StatusChanged(TicketFields):
    """Fields of `ticket.status_changed`."""

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True)

    status: Status = Field(description=STATUS, examples=["pending"])
    from_: Status = Field(alias="from", description="The status before.", examples=["open"])
    to: Status = Field(description="The new status.", examples=["pending"])


class Closed(TicketFields):
    """Fields of `ticket.closed`."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"merged_into"})

    status: Status = Field(description=STATUS, examples=["closed"])
    merged_into: str | None = Field(
        None,
        description="The ticket that goes on in its place; absent unless it was merged.",
    )


class CsatReceived(TicketFields):
    """Fields of `ticket.csat_received`."""

    status: Status = Field(description=STATUS, examples=["closed"])
    score: Literal[1, 2, 3, 4, 5] = Field(description="The rating; 5 is best.", examples=[5])
    comment: str | None = Field(
        description="What the customer added to it; null for nothing.", examples=["Quick and kind"]
    )


class ServiceLevel(TicketFields):
    """Fields of `ticket.sla_due_soon` and `ticket.sla_breached`."""

    target: TargetName
    due_at: Time = Field(
        description="When the target is missed, or was.", examples=[examples.LATER]
    )


def _detail(_: Translate, data: Mapping[str, Any]) -> str:
    """What was said, and the ticket's status, for the customer's history."""
    name, text = str(data.get("status") or ""), str(data.get("text") or "")
    status = {
        "open": _.pgettext("ticket", "Open"),
        "pending": _.pgettext("ticket", "Pending"),
        "snoozed": _.pgettext("ticket", "Snoozed"),
        "closed": _.pgettext("ticket", "Closed"),
    }.get(name, name)
    return " · ".join(each for each in (text[:DETAIL_LENGTH], status) if each)


def _rating(_: Translate, data: Mapping[str, Any]) -> str:
    """The score and the comment, for the customer's history."""
    comment = str(data.get("comment") or "")
    return " · ".join(each for each in (f"{data['score']}/5", comment[:DETAIL_LENGTH]) if each)


HELPDESK_EVENTS = (
    EventSpec(
        CREATED,
        "A ticket was opened, in any way.",
        TicketFields,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Opened a ticket"),
        detail=_detail,
    ),
    EventSpec(
        REPLIED,
        "The customer wrote again, or an agent replied. The message that opened a "
        "ticket is reported only by `ticket.created`; notes emit no event.",
        Replied,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Got an answer to a ticket"),
        detail=_detail,
    ),
    EventSpec(
        STATUS_CHANGED,
        "A ticket's status changed.",
        StatusChanged,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Ticket changed"),
        detail=_detail,
    ),
    EventSpec(
        ASSIGNED,
        "A ticket was assigned to a member, or unassigned.",
        TicketFields,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Ticket assigned"),
        detail=_detail,
    ),
    EventSpec(
        CLOSED,
        "A ticket was closed; its `ticket.status_changed` came before.",
        Closed,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Ticket closed"),
        detail=_detail,
    ),
    EventSpec(
        CSAT_RECEIVED,
        "The customer rated how a closed ticket was answered.",
        CsatReceived,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Rated a ticket"),
        detail=_rating,
    ),
    EventSpec(
        UNANSWERED,
        "The customer has waited for a reply for `unanswered_hours` (24 by default). "
        "Emitted once per wait.",
        TicketFields,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Ticket unanswered for a day"),
        detail=_detail,
    ),
    EventSpec(
        DUE_SOON,
        "A service level target of a ticket will be missed in `warn_seconds`, unless an agent acts.",
        ServiceLevel,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Ticket is due soon"),
        detail=_detail,
    ),
    EventSpec(
        BREACHED,
        "A service level target of a ticket was missed. Emitted once for each target, and for each wait of a"
        " next reply.",
        ServiceLevel,
        subscriber_is_optional=True,
        group="people",
        title=lambda _, _data: _("Ticket is overdue"),
        detail=_detail,
    ),
)
