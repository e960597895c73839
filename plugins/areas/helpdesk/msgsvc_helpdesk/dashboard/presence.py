"""Presence: the pages of tickets tell that they are open, and that somebody types."""

from msgsvc_core.dashboard import PageContext, Render
from msgsvc_core.db import Database
from msgsvc_helpdesk.dashboard.acting import viewer_of
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.team.viewers import TicketViewers


class Presence:
    """Records who has a ticket open, in its own transaction: the audit log does not keep it."""

    def __init__(self, *, db: Database, viewers: TicketViewers) -> None:
        self._db = db
        self._viewers = viewers

    async def mark_seen(self, page: PageContext, ticket_id: str, *, typing: bool) -> None:
        """Raises `NotFound` for a ticket that is not there, and of another project."""
        async with self._db.transaction(inline=True, durable=False, one_statement=True) as tx:
            await self._viewers.mark_seen(
                tx, page.project_id, ticket_id, viewer_of(page), typing=typing
            )


@pages.post(
    "/tickets/{ticket_id}/present",
    access="customers:read",
    read_only=True,
    holds_connection=False,
)
async def present(page: PageContext, presence: Presence) -> Render:
    """Sent by the open page every 10 seconds, and when somebody begins to type."""
    typing = page.form.text("typing") == "1"
    await presence.mark_seen(page, page.params["ticket_id"], typing=typing)
    return Render("unchanged.html", status=204)
