"""Statistics: the number of tickets, and response times."""

from msgsvc_core.dashboard import PageContext, Render
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.stats import stats_of

#: Days that can be looked back on; the first unless the address says otherwise.
DAYS = (30, 7, 90)


@pages.get("/tickets/figures", access="customers:read")
async def figures(page: PageContext, clock: Clock, tickets: Tickets) -> Render:
    chosen = page.query.get("days", "")
    days = next((each for each in DAYS if str(each) == chosen), DAYS[0])
    since_ms = clock.now_ms() - days * DAY_MS
    stats = await stats_of(page.tx, page.project_id, since_ms, None, tickets.sla)
    return Render("figures.html", {"stats": stats, "days": days, "choices": sorted(DAYS)})
