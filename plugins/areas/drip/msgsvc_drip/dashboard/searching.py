"""What a search finds of drip campaigns."""

from collections.abc import Sequence

from msgsvc_core.dashboard import Hit, PageContext, Pages
from msgsvc_drip.service import Drips

#: The newest campaigns, of which those with the text in their name are found.
LOOKED_AT = 100

#: Hits at most.
MOST = 5


def declare(pages: Pages) -> None:
    """Registers what a search finds."""
    pages.search(access="project:read", order=44)(found_campaigns)


async def found_campaigns(page: PageContext, drips: Drips) -> Sequence[Hit]:
    """Campaigns by id, or by a part of the name."""
    text = page.searched
    known = await drips.page(page.tx, page.project_id, None, LOOKED_AT)
    return [
        Hit(
            page._("Drip campaigns"),
            each.name,
            page.url(f"/drips/{each.drip_id}"),
            icon="chain",
            is_exact=text == each.drip_id,
        )
        for each in known
        if text == each.drip_id or text.casefold() in each.name.casefold()
    ][:MOST]
