"""The page of the helpdesk's settings: assignment, agents, and the viewer's own choices."""

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.values import whole_number
from msgsvc_core.members import Members
from msgsvc_helpdesk.dashboard.acting import who_acts, who_reads
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.team.models import UpdateDeskSettingsBody, UpdateTicketAgentBody


@pages.get("/tickets/settings", access="customers:read")
async def desk(page: PageContext, tickets: Tickets, members: Members) -> Render:
    me = await who_reads(page, members)
    assignment, project_id = tickets.assignment, page.project_id
    values = {
        "settings": await assignment.settings(page.tx, project_id),
        "default": assignment.default,
        "agents": await assignment.agents(page.tx, project_id),
        "me": me,
        "mine": None if me is None else await assignment.chosen(page.tx, project_id, me.member_id),
    }
    return Render("desk.html", values)


@pages.post(
    "/tickets/settings",
    access="project:write",
    form_page=desk,
    title=lambda _: _("Helpdesk settings changed"),
)
async def change_desk(page: PageContext, tickets: Tickets) -> Redirect:
    wanted = validate(UpdateDeskSettingsBody, {"assignment": page.form.text("assignment") or None})
    await tickets.assignment.change_settings(page.tx, page.project_id, wanted)
    page.note(assignment=wanted.assignment)
    return _back(page)


@pages.post(
    "/tickets/settings/mine",
    access="customers:write",
    form_page=desk,
    title=lambda _: _("Helpdesk settings changed"),
)
async def change_mine(page: PageContext, tickets: Tickets, members: Members) -> Redirect:
    """The viewer's own: whether they take tickets, and whether single keys act."""
    me = await who_acts(page, members)
    chosen = page.form.text("what")
    change = {chosen: page.form.text("value") == "1"}
    wanted = validate(UpdateTicketAgentBody, change)
    await tickets.assignment.change_agent(page.tx, page.project_id, me.member_id, wanted)
    page.note(**change)
    return _back(page)


@pages.post(
    "/tickets/settings/agents/{member_id}",
    access="project:write",
    form_page=desk,
    title=lambda _: _("Agent changed"),
)
async def change_agent(page: PageContext, tickets: Tickets) -> Redirect:
    """Whether, and how many, tickets an agent gets automatically."""
    limit = page.form.text("max_open_tickets").strip()
    wanted = validate(
        UpdateTicketAgentBody,
        {
            "available": page.form.text("available") == "1",
            "max_open_tickets": (whole_number(limit) or limit) if limit else None,
        },
    )
    member_id = page.params["member_id"]
    await tickets.assignment.change_agent(page.tx, page.project_id, member_id, wanted)
    page.note(available=wanted.available, max_open_tickets=wanted.max_open_tickets)
    return _back(page)


def _back(page: PageContext) -> Redirect:
    return Redirect(page.url("/tickets/settings"), notice=page._("Saved."))
