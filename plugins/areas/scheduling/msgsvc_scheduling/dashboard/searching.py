"""What a search finds of scheduled and recurring messages."""

from collections.abc import Sequence

from msgsvc_core.dashboard import Hit, PageContext, Pages
from msgsvc_core.kernel.errors import NotFound
from msgsvc_scheduling.dashboard.waiting import kind_of
from msgsvc_scheduling.service import Scheduling


def declare(pages: Pages) -> None:
    """Registers what a search finds."""
    pages.search(access="project:read", order=42)(found_schedules)


async def found_schedules(page: PageContext, scheduling: Scheduling) -> Sequence[Hit]:
    """A scheduled or recurring message by its id."""
    text = page.searched
    if not text.startswith(("sch_", "rec_")):
        return ()
    try:
        record = await scheduling.get(page.tx, page.project_id, text, kind_of(text))
    except NotFound:
        return ()
    url = page.url(f"/schedules/{record.record_id}")
    kind = page._("Scheduled messages")
    return [Hit(kind, record.record_id, url, icon="clock", is_exact=True)]
