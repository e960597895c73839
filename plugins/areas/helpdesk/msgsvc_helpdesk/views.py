"""Tickets as the API shows them."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.messages.models import MediaAnswer, Message, MessageStatus
from msgsvc_core.plugins.tickets import Priority
from msgsvc_helpdesk.models import Author, Blocked, Entry, Status, Ticket


class TicketAnswer(ResponseModel):
    """A ticket. Seconds count from when it was opened; the resolution is the last closing, null while
    it is not closed. `waiting_since` is when the customer began to wait for an answer."""

    ticket_id: str
    number: int
    subject: str
    status: Status
    priority: Priority
    channel: str
    subscriber_id: str | None
    customer_name: str
    customer_email: str
    assignee_id: str | None
    tags: list[str]
    source: str = Field(description="`message`, `api`, or which plugin asked for it, as `form`.")
    source_id: str | None
    created_at: str
    updated_at: str
    last_message_at: str
    waiting_since: str | None
    snoozed_until: str | None
    closed_at: str | None
    first_response_seconds: int | None
    resolution_seconds: int | None
    csat_score: int | None
    csat_comment: str | None
    merged_into: str | None

    @classmethod
    def of(cls, ticket: Ticket) -> "TicketAnswer":
        return cls(**_fields(ticket))


def _fields(ticket: Ticket) -> dict[str, object]:
    same = (
        "ticket_id number subject status priority channel subscriber_id customer_name"
        " customer_email assignee_id source source_id csat_score csat_comment merged_into"
    )
    return {
        **{name: getattr(ticket, name) for name in same.split()},
        "tags": list(ticket.tags),
        "created_at": to_rfc3339(ticket.created_at_ms),
        "updated_at": to_rfc3339(ticket.updated_at_ms),
        "last_message_at": to_rfc3339(ticket.last_message_at_ms),
        "waiting_since": optional_rfc3339(ticket.waiting_since_ms),
        "snoozed_until": optional_rfc3339(ticket.snoozed_until_ms),
        "closed_at": optional_rfc3339(ticket.closed_at_ms),
        "first_response_seconds": _seconds(ticket.created_at_ms, ticket.first_response_at_ms),
        "resolution_seconds": _seconds(ticket.created_at_ms, ticket.closed_at_ms),
    }


def _seconds(from_ms: int, to_ms: int | None) -> int | None:
    return None if to_ms is None else (to_ms - from_ms) // 1000


class TicketList(ResponseModel):
    """A page of tickets, newest first."""

    data: list[TicketAnswer]
    next_cursor: str | None


class EditAnswer(ResponseModel):
    """What a message said until then."""

    text: str
    replaced_at: str


class AgentReplyDelivery(ResponseModel):
    """What became of the message that brings an answer to the customer."""

    message_id: str
    status: MessageStatus
    reason: str | None


class TicketEntryAnswer(ResponseModel):
    """Something said in a ticket. `delivery` is null for notes, for the customer's own words, where they
    have no messenger, and when the message is no longer kept. `file_ids` lead to `/v1/files`."""

    ticket_message_id: str
    author: Author
    member_id: str | None
    internal: bool
    text: str
    format: str
    media: MediaAnswer | None
    file_ids: list[str]
    delivery: AgentReplyDelivery | None
    edits: list[EditAnswer] = Field(description="What it said before, the oldest first.")
    created_at: str
    edited_at: str | None

    @classmethod
    def of(cls, entry: Entry, message: Message | None) -> "TicketEntryAnswer":
        media = entry.media
        return cls(
            ticket_message_id=entry.entry_id,
            author=entry.author,
            member_id=entry.member_id,
            internal=entry.internal,
            text=entry.text,
            format=entry.format,
            media=media and MediaAnswer(type=media.type, url=media.url, filename=media.filename),
            file_ids=list(entry.file_ids),
            delivery=message
            and AgentReplyDelivery(
                message_id=message.message_id, status=message.status, reason=message.reason
            ),
            edits=[
                EditAnswer(text=edit.text, replaced_at=to_rfc3339(edit.replaced_at_ms))
                for edit in entry.edits
            ],
            created_at=to_rfc3339(entry.created_at_ms),
            edited_at=optional_rfc3339(entry.edited_at_ms),
        )


class EntryPage(ResponseModel):
    """A page of what was said, newest first."""

    data: list[TicketEntryAnswer]
    next_cursor: str | None


class WholeTicketAnswer(TicketAnswer):
    """A ticket with a page of what was said in it."""

    messages: EntryPage

    @classmethod
    def whole(
        cls,
        ticket: Ticket,
        page: Sequence[Entry],
        next_cursor: str | None,
        messages: Mapping[str, Message],
    ) -> "WholeTicketAnswer":
        shown = [
            TicketEntryAnswer.of(entry, messages.get(entry.message_id or "")) for entry in page
        ]
        return cls(**_fields(ticket), messages=EntryPage(data=shown, next_cursor=next_cursor))


class ReplyAnswer(ResponseModel):
    """What was said, and the ticket afterwards."""

    ticket: TicketAnswer
    message: TicketEntryAnswer


class BlockedAnswer(ResponseModel):
    """A subscriber whose messages open nothing."""

    subscriber_id: str
    reason: str
    created_at: str

    @classmethod
    def of(cls, blocked: Blocked) -> "BlockedAnswer":
        return cls(
            subscriber_id=blocked.subscriber_id,
            reason=blocked.reason,
            created_at=to_rfc3339(blocked.created_at_ms),
        )


class BlockedList(ResponseModel):
    """A page of the blocklist."""

    data: list[BlockedAnswer]
    next_cursor: str | None


class Percentiles(ResponseModel):
    """Seconds within which so many of a hundred tickets were answered, or closed; by nearest rank. Null
    where there is none to count."""

    count: int
    p50: int | None
    p90: int | None
    p95: int | None
    p99: int | None


class Rating(ResponseModel):
    """What customers said of closed tickets, 1-5."""

    count: int
    average: float | None


class StatsAnswer(ResponseModel):
    """Tickets that were opened since; those merged into others are not counted."""

    since: str
    opened: int
    by_status: dict[str, int]
    first_response_seconds: Percentiles
    resolution_seconds: Percentiles
    csat: Rating
