"""The inbox: the list of tickets, updated while it is open."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Render
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import whole_number
from msgsvc_core.members import Member, Members
from msgsvc_helpdesk.dashboard.acting import viewer_of, who_reads
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.inbox import MOST_COUNTED, Inbox
from msgsvc_helpdesk.models import InboxQuery, Ticket
from msgsvc_helpdesk.team.assignment import Assignment
from msgsvc_helpdesk.team.models import Viewer
from msgsvc_helpdesk.team.viewers import TicketViewers

#: Query parameters of a list, without its cursor.
FILTERS = ("status", "who", "priority", "tag", "due", "sort")

#: The status that stands for tickets of every status.
ANY = "all"


class TicketList:
    """What the list of tickets shows."""

    def __init__(
        self,
        *,
        clock: Clock,
        members: Members,
        inbox: Inbox,
        viewers: TicketViewers,
        assignment: Assignment,
    ) -> None:
        self._clock = clock
        self._members = members
        self._inbox = inbox
        self._viewers = viewers
        self._assignment = assignment

    async def marker(self, page: PageContext) -> str:
        """Another one as soon as the list looks different to this viewer, and each minute."""
        marker = await self._inbox.marker(page.tx, page.project_id)
        present = await self._present(page)
        if not present:
            return marker
        looks = sorted((one.ticket_id, one.viewer_id, one.is_typing) for one in present)
        return f"{marker}-{hashlib.sha256(repr(looks).encode()).hexdigest()[:12]}"

    async def _present(self, page: PageContext) -> list[Viewer]:
        return await self._viewers.present(page.tx, page.project_id, viewer_of(page))

    async def asked(self, page: PageContext) -> dict[str, str | None]:
        """The filters in the page's address, as those of `InboxQuery`."""
        me = await who_reads(page, self._members)
        filters = {name: page.query.get(name, "") for name in FILTERS}
        return _asked(filters, None if me is None else me.member_id)

    async def listed(self, page: PageContext, ticket_id: str = "") -> dict[str, Any]:
        """What the list of tickets shows, by the filters in the page's address."""
        me = await who_reads(page, self._members)
        member_id = None if me is None else me.member_id
        filters = {name: page.query.get(name, "") for name in FILTERS}
        cursor = page.query.get("cursor") or None
        order = {"sort": filters["sort"] or "activity", "cursor": cursor}
        query = validate(InboxQuery, {**_asked(filters, member_id), **order})
        box = self._inbox
        # Before the list: what changes in between is in it, and shown once more.
        marker = await self.marker(page)
        found, following = await box.page(page.tx, page.project_id, query)
        agents = await self._members.list_agents(page.tx, page.project_id)
        names = {agent.member_id: agent.name for agent in agents}
        return {
            "tickets": found,
            "next_cursor": following,
            "cursor": cursor or "",
            "filters": {name: value for name, value in filters.items() if value},
            "status": filters["status"] or "open",
            "counts": await box.counts(page.tx, page.project_id, member_id),
            "most": MOST_COUNTED,
            "marker": marker,
            "seen_ms": _changed_at(page.query.get("seen", "")),
            "overdue_since_ms": box.overdue_since_ms(),
            "now_ms": self._clock.now_ms(),
            "names": names,
            "agents": agents,
            "me": me,
            "present": _names(page, await self._present(page), names),
            "unread": await self._viewers.unread(page.tx, page.project_id, viewer_of(page), found),
            "shortcuts": await self._shortcuts(page, me),
            "open_id": ticket_id or page.query.get("open", ""),
            "is_update": False,
            "customer": customer_name,
        }

    async def _shortcuts(self, page: PageContext, me: Member | None) -> bool:
        if me is None:
            return True
        return (await self._assignment.chosen(page.tx, page.project_id, me.member_id)).shortcuts


@pages.get(
    "/tickets",
    access="customers:read",
    nav=Nav(
        "Tickets",
        icon="ticket",
        group="people",
        order=10,
        also=("/canned-answers", "/new-canned-answer"),
    ),
)
async def inbox(page: PageContext, tickets: TicketList) -> Render:
    return Render("inbox.html", await tickets.listed(page))


@pages.get("/tickets/list", access="customers:read")
async def ticket_list(page: PageContext, tickets: TicketList) -> Render:
    """The list as a fragment, polled by the open page; empty if nothing has changed."""
    seen = page.query.get("seen", "")
    if seen and seen == await tickets.marker(page):
        return Render("unchanged.html", status=204)
    return Render("list.html", {**await tickets.listed(page), "is_update": bool(seen)})


def customer_name(page: PageContext, ticket: Ticket) -> str:
    """The display name of a customer, also of one without a name."""
    return ticket.customer_name or ticket.customer_email or page._("Unnamed customer")


def _names(
    page: PageContext, present: Sequence[Viewer], names: Mapping[str, str]
) -> dict[str, list[str]]:
    """Who has each ticket open, by name."""
    shown: dict[str, list[str]] = {}
    for one in present:
        name = names.get(one.viewer_id) or page._("A colleague")
        shown.setdefault(one.ticket_id, []).append(name)
    return shown


def _asked(filters: dict[str, str], member_id: str | None) -> dict[str, str | None]:
    status = filters["status"] or "open"
    # An account without a member has no tickets; no id is empty.
    who = (member_id or "nobody") if filters["who"] == "me" else filters["who"]
    return {
        "status": None if status == ANY else status,
        "assignee_id": who or None,
        "priority": filters["priority"] or None,
        "tag": filters["tag"] or None,
        "due": filters["due"] or None,
    }


def _changed_at(marker: str) -> int:
    """When the page that shows a marker was up to date; 0 for none."""
    return whole_number(marker.partition("-")[0]) or 0
