"""/v1/tickets."""

from collections.abc import Sequence

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import (
    BadRequest,
    BillingBlocked,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.service import Messages
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import blocklist_routes, team_routes
from msgsvc_helpdesk.bulk_actions import routes as bulk_routes
from msgsvc_helpdesk.canned_answers import routes as canned_answer_routes
from msgsvc_helpdesk.canned_answers.service import CannedAnswers
from msgsvc_helpdesk.models import (
    API,
    VIRTUAL,
    Actor,
    AssignBody,
    CustomerMessage,
    CustomerReplyBody,
    Entry,
    MergeBody,
    Opening,
    OpenTicketBody,
    PriorityBody,
    ReplyBody,
    SnoozeBody,
    StatsQuery,
    StatusBody,
    TicketQuery,
    TicketRef,
    TicketTagsBody,
)
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.service_levels import hours_routes
from msgsvc_helpdesk.service_levels import routes as sla_routes
from msgsvc_helpdesk.stats import stats_of
from msgsvc_helpdesk.views import (
    ReplyAnswer,
    StatsAnswer,
    TicketAnswer,
    TicketEntryAnswer,
    TicketList,
    WholeTicketAnswer,
)

router = Router(
    area="helpdesk",
    description="Tickets: what customers write, and what agents reply.",
    group="people",
)

#: Days of which figures are shown unless the request says since when.
STATS_DAYS = 30

_CUSTOMER_ERRORS = (
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
)


@router.get("/v1/tickets", errors=(BadRequest,))
async def list_tickets(ctx: Context, query: TicketQuery, tickets: Tickets) -> TicketList:
    """Lists the project's tickets, newest first unless `sort` says otherwise; all filters must match."""
    found = await tickets.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, query.place_of)
    return TicketList(data=[TicketAnswer.of(ticket) for ticket in page], next_cursor=following)


@router.post("/v1/tickets", status=201, errors=_CUSTOMER_ERRORS)
async def open_ticket(
    ctx: Context, body: OpenTicketBody, subscribers: Subscribers, tickets: Tickets
) -> TicketAnswer:
    """Opens a ticket for a subscriber, or with `channel: "virtual"` for a customer without messenger."""
    subscriber_id = None
    if body.channel != VIRTUAL:
        recipient = await subscribers.get_recipient(
            ctx.project_id,
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            channel=body.channel,
            tx=ctx.tx,
        )
        subscriber_id = recipient.subscriber_id
    tickets.check_text(body.text)
    opening = Opening(
        source="api",
        message=CustomerMessage(body.text, tuple(body.file_ids)),
        subject=body.subject,
        subscriber_id=subscriber_id,
        customer_name=body.name or "",
        customer_email=body.email or "",
        priority=body.priority,
        tags=tuple(body.tags),
        assignee_id=body.assignee_id,
    )
    return TicketAnswer.of(await tickets.open(ctx.tx, ctx.project_id, opening, API))


@router.get("/v1/tickets/stats")
async def get_ticket_stats(
    ctx: Context, query: StatsQuery, clock: Clock, tickets: Tickets
) -> StatsAnswer:
    """Shows how many tickets were opened, and how fast they were answered and closed.

    The answer has the share of service level targets that were met, too.
    """
    since_ms = query.since
    if since_ms is None:
        since_ms = clock.now_ms() - STATS_DAYS * DAY_MS
    return await stats_of(ctx.tx, ctx.project_id, since_ms, tickets.sla)


@router.get("/v1/tickets/{ticket_id}", errors=(BadRequest, NotFound))
async def get_ticket(
    ctx: Context, ticket_id: TicketRef, query: PageQuery, all_tickets: Tickets, messages: Messages
) -> WholeTicketAnswer:
    """Shows a ticket, by its id or its number, with a page of its messages, newest first.

    For a merged ticket, the ticket it was merged into is returned.
    """
    tickets = all_tickets
    ticket = await tickets.get(ctx.tx, ctx.project_id, ticket_id)
    found = await tickets.entries(
        ctx.tx, ctx.project_id, ticket.ticket_id, query.after, query.fetch_limit
    )
    page, following = query.cut(found, lambda entry: entry.entry_id)
    brought = await _messages_of(ctx, messages, page)
    clocks = await tickets.sla.of(ctx.tx, ctx.project_id, ticket.ticket_id)
    return WholeTicketAnswer.whole(ticket, page, following, brought, clocks)


@router.delete("/v1/tickets/{ticket_id}", status=204, errors=(NotFound,))
async def delete_ticket(ctx: Context, ticket_id: TicketRef, tickets: Tickets) -> None:
    """Permanently deletes a ticket with its messages, files, and tickets merged into it."""
    await tickets.delete(ctx.tx, ctx.project_id, ticket_id)


@router.post(
    "/v1/tickets/{ticket_id}/reply",
    status=201,
    errors=(BillingBlocked, Conflict, NotFound, ValidationFailed),
)
async def reply_to_ticket(
    ctx: Context,
    ticket_id: TicketRef,
    body: ReplyBody,
    all_tickets: Tickets,
    canned_answers: CannedAnswers,
    messages: Messages,
) -> ReplyAnswer:
    """Replies to the customer in their messenger, or with `internal` adds an internal note.

    A reply is a paid operation, a note is not. `message.delivery` of the ticket reports the delivery
    status.
    """
    tickets = all_tickets
    canned = None
    if body.canned is not None:
        lang = await tickets.lang_of(ctx.tx, ctx.project_id, ticket_id)
        content = await canned_answers.render(
            ctx.tx, ctx.project_id, body.canned, body.variables or {}, lang
        )
        canned = content.to_message()
    ticket, entry = await tickets.reply(
        ctx.tx, ctx.project_id, ticket_id, body.to_reply(canned), Actor("agent", body.member_id)
    )
    brought = await _messages_of(ctx, messages, [entry])
    shown = TicketEntryAnswer.of(entry, brought.get(entry.message_id or ""))
    return ReplyAnswer(ticket=TicketAnswer.of(ticket), message=shown)


@router.post("/v1/tickets/{ticket_id}/customer-reply", status=201, errors=(Conflict, NotFound))
async def add_customer_reply(
    ctx: Context, ticket_id: TicketRef, body: CustomerReplyBody, all_tickets: Tickets
) -> TicketAnswer:
    """Adds a message of a virtual customer; returns the ticket it was added to.

    If this ticket was closed too long ago to be reopened, a new one is opened.
    """
    tickets = all_tickets
    tickets.check_text(body.text)
    heard = CustomerMessage(body.text, tuple(body.file_ids))
    return TicketAnswer.of(
        await tickets.add_customer_message(ctx.tx, ctx.project_id, ticket_id, heard, API)
    )


@router.post("/v1/tickets/{ticket_id}/assign", errors=(Conflict, NotFound))
async def assign_ticket(
    ctx: Context, ticket_id: TicketRef, body: AssignBody, tickets: Tickets
) -> TicketAnswer:
    """Assigns a ticket to a member who answers customers, or unassigns it."""
    return TicketAnswer.of(
        await tickets.assign(
            ctx.tx,
            ctx.project_id,
            ticket_id,
            body.assignee_id,
            API,
            only_if_unassigned=body.only_if_unassigned,
        )
    )


@router.post("/v1/tickets/{ticket_id}/status", errors=(NotFound,))
async def set_ticket_status(
    ctx: Context, ticket_id: TicketRef, body: StatusBody, tickets: Tickets
) -> TicketAnswer:
    """Makes a ticket `open` (an agent is to act), `pending` (the customer is) or `closed`."""
    return TicketAnswer.of(
        await tickets.set_status(ctx.tx, ctx.project_id, ticket_id, body.status, API)
    )


@router.post("/v1/tickets/{ticket_id}/priority", errors=(NotFound,))
async def set_ticket_priority(
    ctx: Context, ticket_id: TicketRef, body: PriorityBody, tickets: Tickets
) -> TicketAnswer:
    """Sets the priority of a ticket."""
    return TicketAnswer.of(
        await tickets.set_priority(ctx.tx, ctx.project_id, ticket_id, body.priority, API)
    )


@router.post("/v1/tickets/{ticket_id}/tags", errors=(NotFound,))
async def set_ticket_tags(
    ctx: Context, ticket_id: TicketRef, body: TicketTagsBody, tickets: Tickets
) -> TicketAnswer:
    """Replaces the tags of a ticket."""
    return TicketAnswer.of(
        await tickets.set_tags(ctx.tx, ctx.project_id, ticket_id, body.tags, API)
    )


@router.post("/v1/tickets/{ticket_id}/snooze", errors=(Conflict, NotFound))
async def snooze_ticket(
    ctx: Context, ticket_id: TicketRef, body: SnoozeBody, tickets: Tickets
) -> TicketAnswer:
    """Snoozes a ticket until a time, or until the customer writes; it is `open` again then."""
    return TicketAnswer.of(await tickets.snooze(ctx.tx, ctx.project_id, ticket_id, body.until, API))


@router.post("/v1/tickets/{ticket_id}/close", errors=(NotFound,))
async def close_ticket(ctx: Context, ticket_id: TicketRef, tickets: Tickets) -> TicketAnswer:
    """Closes a ticket. The customer's next message within `reopen_days` reopens it."""
    return TicketAnswer.of(await tickets.close(ctx.tx, ctx.project_id, ticket_id, API))


@router.post("/v1/tickets/{ticket_id}/merge", errors=(Conflict, NotFound))
async def merge_ticket(
    ctx: Context, ticket_id: TicketRef, body: MergeBody, tickets: Tickets
) -> TicketAnswer:
    """Moves all messages of a ticket into another one of the same customer, and closes it.

    Returns the other ticket, to which the id and number of this one refer from then on.
    """
    return TicketAnswer.of(await tickets.merge(ctx.tx, ctx.project_id, ticket_id, body.into, API))


async def _messages_of(
    ctx: Context, messages: Messages, entries: Sequence[Entry]
) -> dict[str, Message]:
    """The core's messages that bring answers, by their ids."""
    message_ids = [entry.message_id for entry in entries if entry.message_id]
    return await messages.get_many(ctx.tx, ctx.project_id, message_ids)


router.endpoints += [
    endpoint
    for part in (
        bulk_routes,
        canned_answer_routes,
        blocklist_routes,
        team_routes,
        hours_routes,
        sla_routes,
    )
    for endpoint in part.router.endpoints
]
