"""One change of several tickets: chosen in a list, or all that match; and how far it is."""

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.members import Members
from msgsvc_helpdesk.bulk_actions.actions import TicketBulkActions
from msgsvc_helpdesk.bulk_actions.models import StartTicketBulkActionBody
from msgsvc_helpdesk.dashboard.acting import who_acts
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.dashboard.inbox import TicketList
from msgsvc_helpdesk.models import TicketFilters

#: Actions of the form whose value is typed into another field.
TAGGED = ("add_tag", "remove_tag")


@pages.get("/tickets/select", access="customers:write")
async def select_tickets(page: PageContext, tickets: TicketList) -> Render:
    """The list of tickets with boxes. It is not updated while it is open, so boxes stay where they are."""
    return Render("select.html", await tickets.listed(page))


@pages.post(
    "/tickets/bulk",
    access="customers:write",
    form_page=select_tickets,
    title=lambda _: _("Bulk action started"),
)
async def start_bulk_action(
    page: PageContext, bulk_actions: TicketBulkActions, listing: TicketList, members: Members
) -> Redirect:
    form = page.form
    who = form.text("who")
    chosen = form.texts("on_page" if who == "page" else "id")
    if who != "all" and not chosen:
        raise ValidationFailed("check one of the tickets at least", field="who")
    action, _, value = form.text("action").partition(":")
    if action in TAGGED:
        value = form.text("bulk_tag").strip()
        if not value:
            raise ValidationFailed("give the tag", field="bulk_tag")
    elif action == "assign" and value == "me":
        value = (await who_acts(page, members)).member_id
    about: dict[str, object] = {"ticket_ids": chosen}
    if who == "all":
        asked = await listing.asked(page)
        filters = {name: asked[name] for name in TicketFilters.model_fields if asked.get(name)}
        about = {"filters": filters} if filters else {"all": True}
    given = {"action": action, "value": value or None, **about}
    bulk = await bulk_actions.start(
        page.tx, page.project_id, validate(StartTicketBulkActionBody, given)
    )
    page.note(bulk_action=action, value=bulk.value, bulk_action_id=bulk.bulk_action_id)
    return Redirect(page.url(f"/tickets/bulk/{bulk.bulk_action_id}"))


@pages.get("/tickets/bulk", access="customers:read")
async def bulk_action_list(page: PageContext, bulk_actions: TicketBulkActions) -> Render:
    query = validate(PageQuery, {"cursor": page.query.get("cursor") or None})
    found = await bulk_actions.page(page.tx, page.project_id, query)
    shown, following = query.cut(found, lambda bulk: bulk.bulk_action_id)
    return Render("bulk_actions.html", {"bulk_actions": shown, "next_cursor": following})


@pages.get("/tickets/bulk/{ticket_bulk_action_id}", access="customers:read")
async def bulk_action(page: PageContext, bulk_actions: TicketBulkActions) -> Render:
    bulk = await bulk_actions.get(page.tx, page.project_id, page.params["ticket_bulk_action_id"])
    template = "bulk_action_state.html" if page.fragment == "state" else "bulk_action.html"
    return Render(template, {"bulk": bulk})


@pages.post(
    "/tickets/bulk/{ticket_bulk_action_id}/cancel",
    access="customers:write",
    form_page=bulk_action,
    title=lambda _: _("Bulk action cancelled"),
)
async def cancel_bulk_action(page: PageContext, bulk_actions: TicketBulkActions) -> Redirect:
    bulk_action_id = page.params["ticket_bulk_action_id"]
    bulk = await bulk_actions.cancel(page.tx, page.project_id, bulk_action_id)
    page.note(bulk_action=bulk.action, done=bulk.done)
    return Redirect(
        page.url(f"/tickets/bulk/{bulk_action_id}"),
        notice=page._("Cancelled. What was done stays."),
    )
