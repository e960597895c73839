"""Tickets as the API shows them."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, SubscriberId, Time, UpdatedAt
from msgsvc_core.channels.failures import Reason
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.messages.content import MediaAnswer, MediaPart, TextPart
from msgsvc_core.messages.fields import MessageStatus
from msgsvc_core.messages.models import Message
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.models import (
    STATUS,
    AssigneeId,
    Author,
    Blocked,
    Entry,
    Status,
    Ticket,
    TicketId,
    TicketNumber,
)
from msgsvc_helpdesk.service_levels.clocks import Ends
from msgsvc_helpdesk.service_levels.models import SlaClockAnswer
from msgsvc_helpdesk.service_levels.rules import SlaClock, Target


class TicketAnswer(ResponseModel):
    """A ticket."""

    ticket_id: TicketId
    number: TicketNumber
    subject: str | None = Field(
        description="What it is about; null for a ticket that was opened without text or subject.",
        examples=["My parcel"],
    )
    status: Status = Field(description=STATUS)
    priority: Priority = Field(description="How urgent it is.", examples=["normal"])
    channel: str = Field(
        description="Channel of the customer; `virtual` for one without a messenger.",
        examples=[examples.CHANNEL],
    )
    subscriber_id: str | None = Field(
        description="The customer; null for one without a messenger.",
        examples=[examples.SUBSCRIBER_ID],
    )
    customer_name: str | None = Field(
        description="First name of a subscriber when it was opened, or the name that was given; null for"
        " none.",
        examples=["Ann"],
    )
    customer_email: str | None = Field(
        description="Email address that was given for a customer without a messenger; else null.",
        examples=[None],
    )
    assignee_id: AssigneeId
    tags: list[str] = Field(description="Labels for agents.", examples=[["delivery"]])
    source: str = Field(
        description="How it was opened: by a `message` of the customer, by the `api`, or by a plugin, such"
        " as `form`.",
        examples=["message"],
    )
    source_id: str | None = Field(
        description="What it was opened for, as the id of a form's submission; null if it came by message"
        " or API.",
        examples=[None],
    )
    created_at: CreatedAt = Field(description="When it was opened.", examples=[examples.TIME])
    updated_at: UpdatedAt
    last_message_at: Time = Field(
        description="When the customer or an agent wrote last; notes do not count."
    )
    waiting_since: Time | None = Field(
        description="When the customer began to wait for an answer; null if they do not wait."
    )
    snoozed_until: Time | None = Field(
        description="When it is open again; null unless it is snoozed.", examples=[None]
    )
    closed_at: Time | None = Field(
        description="When it was last closed; null while it is not.", examples=[None]
    )
    first_response_seconds: int | None = Field(
        description="Seconds from its opening to the first reply of an agent; null before.",
        examples=[None],
    )
    resolution_seconds: int | None = Field(
        description="Seconds from its opening to the last closing; null while it is not closed.",
        examples=[None],
    )
    csat_score: int | None = Field(
        description="The customer's rating, 1-5, of which 5 is best; null if they gave none.",
        examples=[None],
    )
    csat_comment: str | None = Field(
        description="What they added to it; null for nothing.", examples=[None]
    )
    due_at: Time | None = Field(
        description="When the first of its service level targets is missed, or was; null while none runs.",
        examples=[None],
    )
    merged_into: str | None = Field(
        description="Id of the ticket that goes on in its place; null unless it was merged.",
        examples=[None],
    )

    sla: list[SlaClockAnswer] = Field(
        description="Its service level targets; without those that it never had."
    )

    @classmethod
    def of(cls, ticket: Ticket, clocks: Sequence[SlaClock]) -> "TicketAnswer":
        return cls(**_fields(ticket), sla=[SlaClockAnswer.of(clock) for clock in clocks])


def _fields(ticket: Ticket) -> dict[str, object]:
    same = (
        "ticket_id number status priority channel subscriber_id assignee_id source source_id csat_score"
        " csat_comment merged_into"
    )
    return {
        **{name: getattr(ticket, name) for name in same.split()},
        "subject": ticket.subject or None,
        "customer_name": ticket.customer_name or None,
        "customer_email": ticket.customer_email or None,
        "tags": list(ticket.tags),
        "created_at": to_rfc3339(ticket.created_at_ms),
        "updated_at": to_rfc3339(ticket.updated_at_ms),
        "last_message_at": to_rfc3339(ticket.last_message_at_ms),
        "waiting_since": optional_rfc3339(ticket.waiting_since_ms),
        "snoozed_until": optional_rfc3339(ticket.snoozed_until_ms),
        "closed_at": optional_rfc3339(ticket.closed_at_ms),
        "due_at": optional_rfc3339(ticket.due_at_ms),
        "first_response_seconds": _seconds(ticket.created_at_ms, ticket.first_response_at_ms),
        "resolution_seconds": _seconds(ticket.created_at_ms, ticket.closed_at_ms),
    }


def _seconds(from_ms: int, to_ms: int | None) -> int | None:
    return None if to_ms is None else (to_ms - from_ms) // 1000


class TicketList(ResponseModel):
    """A page of tickets, newest first."""

    data: list[TicketAnswer] = Field(description="The tickets of this page.")
    next_cursor: NextCursor


class EditAnswer(ResponseModel):
    """What a message said until then."""

    text: str = Field(description="The text before.", examples=["Where is my parsel?"])
    replaced_at: Time = Field(description="When it was replaced.")


class AgentReplyDelivery(ResponseModel):
    """What became of the message that brings a reply to the customer."""

    message_id: str = Field(
        description="Id of that message, for `GET /v1/messages/{message_id}`.",
        examples=[examples.MESSAGE_ID],
    )
    status: MessageStatus = Field(
        description="Status of its delivery; `unknown` if the service can't tell whether it arrived.",
        examples=["sent"],
    )
    reason: Reason | None = Field(
        description="Why it could not be delivered; null if it was, or is not yet.", examples=[None]
    )


class _EntryAuthor(ResponseModel):
    """Which entry of a ticket it is, and who wrote it."""

    ticket_message_id: str = Field(
        description="Its id, in the order of time.", examples=["tmg_032aJfDzs7stSDw0obfd5c"]
    )
    author: Author = Field(description="Who said it.")
    member_id: str | None = Field(
        description="The member who wrote it; null for the customer, and for a reply by the API that names"
        " none.",
        examples=[None],
    )
    internal: bool = Field(description="Whether it is a note, which the customer does not see.")


class TicketEntryAnswer(
    MediaPart[Annotated[MediaAnswer, Field(examples=[None])]],
    TextPart[Annotated[str, Field(description="What was said.", examples=["Where is my parcel?"])]],
    _EntryAuthor,
):
    """A message or a note of a ticket."""

    file_ids: list[str] = Field(
        description="Stored files, for `GET /v1/files/{file_id}`.", examples=[[]]
    )
    delivery: AgentReplyDelivery | None = Field(
        description="Delivery of a reply. Null for notes, for the customer's own words, without a"
        " messenger, and once the message is no longer kept.",
        examples=[None],
    )
    edits: list[EditAnswer] = Field(
        description="What it said before, the oldest first.", examples=[[]]
    )
    created_at: CreatedAt = Field(description="When it was said.", examples=[examples.TIME])
    edited_at: Time | None = Field(
        description="When its author last edited it; null if they did not.", examples=[None]
    )

    @classmethod
    def of(cls, entry: Entry, message: Message | None) -> "TicketEntryAnswer":
        return cls(
            ticket_message_id=entry.entry_id,
            author=entry.author,
            member_id=entry.member_id,
            internal=entry.internal,
            text=entry.text,
            format=entry.format,
            media=MediaAnswer.of(entry.media),
            file_ids=list(entry.file_ids),
            delivery=message
            and AgentReplyDelivery(
                message_id=message.message_id,
                status=message.status,
                reason=message.reason and Reason(message.reason),
            ),
            edits=[
                EditAnswer(text=edit.text, replaced_at=to_rfc3339(edit.replaced_at_ms))
                for edit in entry.edits
            ],
            created_at=to_rfc3339(entry.created_at_ms),
            edited_at=optional_rfc3339(entry.edited_at_ms),
        )


class TicketMessageList(ResponseModel):
    """A page of a ticket's messages and notes, newest first."""

    data: list[TicketEntryAnswer] = Field(description="The messages and notes of this page.")
    next_cursor: NextCursor


class ReplyAnswer(ResponseModel):
    """The reply or note, and the ticket afterwards."""

    ticket: TicketAnswer = Field(description="The ticket afterwards.")
    message: TicketEntryAnswer = Field(
        description="The reply or note.",
        examples=[
            {
                "ticket_message_id": "tmg_032aJfDzs7stSDw0obfd5c",
                "author": "agent",
                "member_id": examples.MEMBER_ID,
                "internal": False,
                "text": "It arrives tomorrow.",
                "format": "plain",
                "media": None,
                "file_ids": [],
                "delivery": {
                    "message_id": examples.MESSAGE_ID,
                    "status": "queued",
                    "reason": None,
                },
                "edits": [],
                "created_at": examples.TIME,
                "edited_at": None,
            }
        ],
    )


class BlockedAnswer(ResponseModel):
    """A subscriber whose messages open no tickets."""

    subscriber_id: SubscriberId
    reason: str | None = Field(description="Why, for agents; null for none.", examples=["Spam"])
    created_at: CreatedAt = Field(description="When they were blocked.")

    @classmethod
    def of(cls, blocked: Blocked) -> "BlockedAnswer":
        return cls(
            subscriber_id=blocked.subscriber_id,
            reason=blocked.reason or None,
            created_at=to_rfc3339(blocked.created_at_ms),
        )


class BlockedList(ResponseModel):
    """A page of the blocklist."""

    data: list[BlockedAnswer] = Field(description="The blocked subscribers of this page.")
    next_cursor: NextCursor


#: Seconds within which a share of the tickets was answered or closed.
Percentile = Annotated[
    int | None,
    Field(
        description="Seconds within which this percentage of them was, by nearest rank; null for none to"
        " count.",
        examples=[600],
    ),
]


class Percentiles(ResponseModel):
    """How long it took until tickets were answered, or closed."""

    count: int = Field(description="Tickets that were.", examples=[118])
    p50: Percentile = Field(examples=[240])
    p90: Percentile
    p95: Percentile = Field(examples=[1800])
    p99: Percentile = Field(examples=[7200])


class Rating(ResponseModel):
    """How customers rated closed tickets."""

    count: int = Field(description="Tickets that were rated.", examples=[40])
    average: float | None = Field(
        description="Average score, 1-5, of which 5 is best; null for none.", examples=[4.6]
    )


class TicketCounts(TypedDict):
    """Tickets by their status now."""

    open: Annotated[int, Field(description="An agent is to act.", examples=[7])]
    pending: Annotated[int, Field(description="The customer is to act.", examples=[12])]
    snoozed: Annotated[int, Field(description="Snoozed.", examples=[1])]
    closed: Annotated[int, Field(description="Closed.", examples=[100])]


class TargetShare(ResponseModel):
    """How often a service level target was met. Each wait for a next reply counts by itself."""

    met: int = Field(description="How often it was met.", examples=[45])
    missed: int = Field(description="How often it was missed.", examples=[5])
    share: float | None = Field(
        description="Share of those that were met, from 0 to 1; null for none to count.",
        examples=[0.9],
    )


class TargetShares(ResponseModel):
    """How often the service level targets were met."""

    first_response: TargetShare = Field(description="First replies.")
    next_response: TargetShare = Field(description="Replies to what customers wrote since.")
    resolution: TargetShare = Field(description="Closings.")

    @classmethod
    def of(cls, ends: Mapping[Target, Ends]) -> "TargetShares":
        return cls(
            **{
                target: TargetShare(
                    met=one.met,
                    missed=one.missed,
                    share=round(one.met / total, 4) if (total := one.met + one.missed) else None,
                )
                for target, one in ends.items()
            }
        )


class TicketStatsAnswer(ResponseModel):
    """Figures of the tickets opened in a period, without those merged into others."""

    created_after: Time = Field(
        description="Tickets opened after this time are counted.",
        examples=["2026-02-01T00:00:00.000Z"],
    )
    created_before: Time | None = Field(
        description="Tickets opened before this time are counted; null for all.", examples=[None]
    )
    opened: int = Field(description="How many were opened.", examples=[120])
    by_status: TicketCounts = Field(description="How many of them have which status now.")
    first_response_seconds: Percentiles = Field(
        description="Times from the opening to the first reply."
    )
    resolution_seconds: Percentiles = Field(
        description="Times from the opening to the last closing, of tickets that are closed.",
        examples=[{"count": 100, "p50": 7200, "p90": 86400, "p95": 172800, "p99": 432000}],
    )
    csat: Rating = Field(description="Ratings by customers.")
    sla: TargetShares = Field(
        description="Service level targets that were met or missed on the days of that time, in UTC,"
        " of tickets of any age. A missed one counts when its time is over."
    )
