"""/v1/tickets/settings, /v1/tickets/agents, and who has a ticket open."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.errors import BadRequest, NotFound, ValidationFailed
from msgsvc_core.members.models import MemberId
from msgsvc_helpdesk.models import TicketRef
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.team.assignment import Agent
from msgsvc_helpdesk.team.models import (
    AgentAnswer,
    AgentList,
    DeskSettingsAnswer,
    RecordTicketViewerBody,
    UpdateDeskSettingsBody,
    UpdateTicketAgentBody,
    ViewerAnswer,
    ViewerList,
)
from msgsvc_helpdesk.team.viewers import TicketViewers

router = Router(area="helpdesk")

T = TypeVar("T")


@router.get("/v1/tickets/settings")
async def get_ticket_settings(ctx: Context, tickets: Tickets) -> DeskSettingsAnswer:
    """Shows the project's helpdesk settings."""
    return DeskSettingsAnswer.of(await tickets.assignment.settings(ctx.tx, ctx.project_id))


@router.patch("/v1/tickets/settings", audited=lambda _: _("Helpdesk settings changed"))
async def update_ticket_settings(
    ctx: Context, body: UpdateDeskSettingsBody, tickets: Tickets
) -> DeskSettingsAnswer:
    """Changes the project's helpdesk settings; omitted ones stay unchanged."""
    changed = await tickets.assignment.change_settings(ctx.tx, ctx.project_id, body)
    return DeskSettingsAnswer.of(changed)


@router.get("/v1/tickets/agents", errors=(BadRequest,))
async def list_ticket_agents(ctx: Context, query: PageQuery, tickets: Tickets) -> AgentList:
    """Lists the members who answer customers, newest first, with the open tickets that each has."""
    agents = await tickets.assignment.agents(ctx.tx, ctx.project_id)
    page, following = _page(query, agents, lambda agent: agent.member_id)
    return AgentList(data=[_shown(agent) for agent in page], next_cursor=following)


@router.patch(
    "/v1/tickets/agents/{member_id}",
    errors=(NotFound, ValidationFailed),
    audited=lambda _: _("Agent changed"),
)
async def update_ticket_agent(
    ctx: Context, member_id: MemberId, body: UpdateTicketAgentBody, tickets: Tickets
) -> AgentAnswer:
    """Changes whether, and how many, tickets are assigned to an agent automatically."""
    return _shown(await tickets.assignment.change_agent(ctx.tx, ctx.project_id, member_id, body))


@router.get("/v1/tickets/{ticket_id}/viewers", errors=(BadRequest, NotFound))
async def list_ticket_viewers(
    ctx: Context, ticket_id: TicketRef, query: PageQuery, tickets: Tickets, viewers: TicketViewers
) -> ViewerList:
    """Lists the members who have the ticket open now, the newest member first, and shows who is writing."""
    ticket = await tickets.get(ctx.tx, ctx.project_id, ticket_id)
    present = await viewers.present(ctx.tx, ctx.project_id)
    found = [one for one in present if one.ticket_id == ticket.ticket_id]
    page, following = _page(query, found, lambda viewer: viewer.viewer_id)
    return ViewerList(data=[ViewerAnswer.of(one) for one in page], next_cursor=following)


@router.put("/v1/tickets/{ticket_id}/viewers/{member_id}", errors=(NotFound, ValidationFailed))
async def record_ticket_viewer(
    ctx: Context,
    ticket_id: TicketRef,
    member_id: MemberId,
    body: RecordTicketViewerBody,
    tickets: Tickets,
    viewers: TicketViewers,
) -> ViewerAnswer:
    """Records that a member has the ticket open. Repeat it every 10 seconds; it expires after 25."""
    await tickets.check_agent(ctx.tx, ctx.project_id, member_id, "member_id")
    ticket = await tickets.get(ctx.tx, ctx.project_id, ticket_id)
    await viewers.mark_seen(ctx.tx, ctx.project_id, ticket.ticket_id, member_id, typing=body.typing)
    present = await viewers.present(ctx.tx, ctx.project_id)
    return next(
        ViewerAnswer.of(one)
        for one in present
        if (one.ticket_id, one.viewer_id) == (ticket.ticket_id, member_id)
    )


def _page(
    query: PageQuery, found: Sequence[T], id_of: Callable[[T], str]
) -> tuple[list[T], str | None]:
    """A page of a list that is read as a whole, the newest id first."""
    after = query.begin("mem")
    left = [one for one in found if after is None or id_of(one) < after]
    return query.cut(sorted(left, key=id_of, reverse=True), id_of)


def _shown(agent: Agent) -> AgentAnswer:
    return AgentAnswer(
        member_id=agent.member_id,
        name=agent.name,
        available=agent.settings.available,
        max_open_tickets=agent.settings.max_open_tickets,
        shortcuts=agent.settings.shortcuts,
        open_tickets=agent.open_tickets,
    )
