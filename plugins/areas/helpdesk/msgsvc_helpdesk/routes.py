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
    AddCustomerReplyBody,
    CustomerMessage,
    Entry,
    MergeTicketBody,
    NamedTicketTag,
    Opening,
    OpenTicketBody,
    ReplyToTicketBody,
    StatsQuery,
    Ticket,
    TicketQuery,
    TicketRef,
    UpdateTicketBody,
)
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.service_levels import hours_routes
from msgsvc_helpdesk.service_levels import routes as sla_routes
from msgsvc_helpdesk.stats import stats_of
from msgsvc_helpdesk.views import (
    ReplyAnswer,
    TicketAnswer,
    TicketEntryAnswer,
    TicketList,
    TicketMessageList,
    TicketStatsAnswer,
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
    return TicketList(data=await _answers(ctx, tickets, page), next_cursor=following)


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
        subject=body.subject or "",
        subscriber_id=subscriber_id,
        customer_name=body.name or "",
        customer_email=body.email or "",
        priority=body.priority,
        tags=tuple(body.tags),
        assignee_id=body.assignee_id,
    )
    ticket = await tickets.open(ctx.tx, ctx.project_id, opening, API)
    return await _answer(ctx, tickets, ticket)


@router.get("/v1/tickets/stats")
async def get_ticket_stats(
    ctx: Context, query: StatsQuery, clock: Clock, tickets: Tickets
) -> TicketStatsAnswer:
    """Shows how many tickets were opened, and how fast they were answered and closed.

    The answer has the share of service level targets that were met, too.
    """
    after_ms = query.created_after
    if after_ms is None:
        after_ms = clock.now_ms() - STATS_DAYS * DAY_MS
    return await stats_of(ctx.tx, ctx.project_id, after_ms, query.created_before, tickets.sla)


@router.get("/v1/tickets/{ticket_id}", errors=(NotFound,))
async def get_ticket(ctx: Context, ticket_id: TicketRef, tickets: Tickets) -> TicketAnswer:
    """Shows a ticket, by its id or its number.

    For a merged ticket, the ticket it was merged into is returned.
    """
    return await _answer(ctx, tickets, await tickets.get(ctx.tx, ctx.project_id, ticket_id))


@router.get("/v1/tickets/{ticket_id}/messages", errors=(BadRequest, NotFound))
async def list_ticket_messages(
    ctx: Context, ticket_id: TicketRef, query: PageQuery, tickets: Tickets, messages: Messages
) -> TicketMessageList:
    """Lists a ticket's messages and notes, newest first.

    For a merged ticket, they are those of the ticket it was merged into.
    """
    ticket = await tickets.get(ctx.tx, ctx.project_id, ticket_id)
    found = await tickets.entries(
        ctx.tx, ctx.project_id, ticket.ticket_id, query.begin("tmg"), query.fetch_limit
    )
    page, following = query.cut(found, lambda entry: entry.entry_id)
    brought = await _messages_of(ctx, messages, page)
    shown = [TicketEntryAnswer.of(entry, brought.get(entry.message_id or "")) for entry in page]
    return TicketMessageList(data=shown, next_cursor=following)


@router.patch("/v1/tickets/{ticket_id}", errors=(Conflict, NotFound))
async def update_ticket(
    ctx: Context, ticket_id: TicketRef, body: UpdateTicketBody, tickets: Tickets
) -> TicketAnswer:
    """Changes a ticket's status, priority, assignee, tags or snooze: all of them, or none.

    A snoozed ticket is `open` again at its time, or when the customer writes. The customer's next
    message within `reopen_days` reopens a closed one.
    """
    ticket = await tickets.update(ctx.tx, ctx.project_id, ticket_id, body.to_update(), API)
    return await _answer(ctx, tickets, ticket)


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
    body: ReplyToTicketBody,
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
    return ReplyAnswer(ticket=await _answer(ctx, tickets, ticket), message=shown)


@router.post("/v1/tickets/{ticket_id}/customer-reply", status=201, errors=(Conflict, NotFound))
async def add_customer_reply(
    ctx: Context, ticket_id: TicketRef, body: AddCustomerReplyBody, all_tickets: Tickets
) -> TicketAnswer:
    """Adds a message of a virtual customer; returns the ticket it was added to.

    If this ticket was closed too long ago to be reopened, a new one is opened.
    """
    tickets = all_tickets
    tickets.check_text(body.text)
    heard = CustomerMessage(body.text, tuple(body.file_ids))
    ticket = await tickets.add_customer_message(ctx.tx, ctx.project_id, ticket_id, heard, API)
    return await _answer(ctx, tickets, ticket)


@router.put("/v1/tickets/{ticket_id}/tags/{key}", errors=(NotFound, ValidationFailed))
async def add_ticket_tag(
    ctx: Context, ticket_id: TicketRef, key: NamedTicketTag, tickets: Tickets
) -> TicketAnswer:
    """Adds a tag to a ticket; its other tags stay."""
    ticket = await tickets.add_tag(ctx.tx, ctx.project_id, ticket_id, key, API)
    return await _answer(ctx, tickets, ticket)


@router.delete("/v1/tickets/{ticket_id}/tags/{key}", status=204, errors=(NotFound,))
async def remove_ticket_tag(
    ctx: Context, ticket_id: TicketRef, key: NamedTicketTag, tickets: Tickets
) -> None:
    """Removes a tag from a ticket, if present."""
    await tickets.remove_tag(ctx.tx, ctx.project_id, ticket_id, key, API)


@router.post("/v1/tickets/{ticket_id}/merge", errors=(Conflict, NotFound))
async def merge_ticket(
    ctx: Context, ticket_id: TicketRef, body: MergeTicketBody, tickets: Tickets
) -> TicketAnswer:
    """Moves all messages of a ticket into another one of the same customer, and closes it.

    Returns the other ticket, to which the id and number of this one refer from then on.
    """
    ticket = await tickets.merge(ctx.tx, ctx.project_id, ticket_id, body.into, API)
    return await _answer(ctx, tickets, ticket)


async def _answer(ctx: Context, tickets: Tickets, ticket: Ticket) -> TicketAnswer:
    [answer] = await _answers(ctx, tickets, [ticket])
    return answer


async def _answers(ctx: Context, tickets: Tickets, page: Sequence[Ticket]) -> list[TicketAnswer]:
    """With how far they are from their service level targets."""
    ids = [ticket.ticket_id for ticket in page]
    clocks = await tickets.sla.of_each(ctx.tx, ctx.project_id, ids)
    return [TicketAnswer.of(ticket, clocks.get(ticket.ticket_id, [])) for ticket in page]


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
