"""What a search finds of tickets."""

from collections.abc import Sequence

from msgsvc_core.dashboard import Hit, PageContext
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.values import whole_number
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.dashboard.inbox import customer_name
from msgsvc_helpdesk.service import Tickets


@pages.search(access="customers:read", order=20)
async def found_tickets(page: PageContext, tickets: Tickets) -> Sequence[Hit]:
    """A ticket by its id or number, with or without `#`."""
    text = page.searched
    name = text.removeprefix("#")
    if not name.startswith("tkt_") and whole_number(name) is None:
        return ()
    try:
        ticket = await tickets.get(page.tx, page.project_id, name)
    except NotFound:
        return ()
    return [
        Hit(
            page._("Tickets"),
            f"#{ticket.number} {ticket.subject}".strip(),
            page.url(f"/tickets/{ticket.ticket_id}"),
            detail=customer_name(page, ticket),
            icon="ticket",
            # Plain digits may be something else's as well, e.g. an external id.
            is_exact=not text.isdigit(),
        )
    ]
