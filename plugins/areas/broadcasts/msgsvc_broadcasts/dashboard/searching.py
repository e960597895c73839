"""What a search finds of broadcasts."""

from collections.abc import Sequence

from msgsvc_broadcasts.service import Broadcasts
from msgsvc_core.dashboard import Hit, PageContext, Pages
from msgsvc_core.kernel.errors import NotFound


def declare(pages: Pages) -> None:
    """Registers what a search finds."""
    pages.search(access="project:read", order=40)(found_broadcasts)


async def found_broadcasts(page: PageContext, broadcasts: Broadcasts) -> Sequence[Hit]:
    """A broadcast by its id."""
    text = page.searched
    if not text.startswith("job_"):
        return ()
    try:
        mailing = await broadcasts.get(page.tx, page.project_id, text)
    except NotFound:
        return ()
    url = page.url(f"/broadcasts/{mailing.job_id}")
    return [Hit(page._("Broadcasts"), mailing.job_id, url, icon="megaphone", is_exact=True)]
