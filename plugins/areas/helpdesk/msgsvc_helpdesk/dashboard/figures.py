"""Figures of tickets on the overview."""

from collections.abc import Sequence

from msgsvc_core.dashboard import Figure, PageContext
from msgsvc_core.members import Members
from msgsvc_helpdesk.dashboard.acting import who_reads
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.inbox import MOST_COUNTED, Inbox


@pages.figures(access="customers:read", order=10)
async def ticket_figures(page: PageContext, members: Members, inbox: Inbox) -> Sequence[Figure]:
    """Open tickets, and those without an agent."""
    me = await who_reads(page, members)
    member_id = None if me is None else me.member_id
    counts = await inbox.counts(page.tx, page.project_id, member_id)
    _ = page._
    overdue = min(MOST_COUNTED, counts.overdue + counts.missed)
    late = _.ngettext("{count} overdue", "{count} overdue", overdue)
    return [
        Figure(
            _("Open tickets"),
            counts.open,
            note=late if overdue else _("none overdue"),
            tone="bad" if overdue else "",
            url=page.url(
                "/tickets", **({"status": "all", "due": "overdue"} if counts.missed else {})
            ),
            at_least=counts.open >= MOST_COUNTED,
        ),
        Figure(
            _("Unassigned tickets"),
            counts.unassigned,
            url=page.url("/tickets", who="none"),
            at_least=counts.unassigned >= MOST_COUNTED,
        ),
    ]
