"""What a search finds of webhooks and their deliveries."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.dashboard import Hit, PageContext
from msgsvc_core.kernel.errors import NotFound
from msgsvc_webhooks.dashboard.pages import pages
from msgsvc_webhooks.service import Webhooks

#: Hits at most.
MOST = 5


@pages.search(access="project:read", order=70)
async def found_webhooks(page: PageContext, webhooks: Webhooks) -> Sequence[Hit]:
    """Webhooks by id, or by a part of the URL; a delivery by its id."""
    text = page.searched
    if text.startswith("whd_"):
        return await _delivery(page, webhooks)
    known = await webhooks.page(page.tx, page.project_id, None, PageQuery(limit=100).fetch_limit)
    return [
        Hit(
            page._("Webhooks"),
            each.url,
            page.url(f"/webhooks/{each.webhook_id}"),
            detail=each.description or "",
            icon="webhook",
            is_exact=text == each.webhook_id,
        )
        for each in known
        if text == each.webhook_id or text.casefold() in each.url.casefold()
    ][:MOST]


async def _delivery(page: PageContext, webhooks: Webhooks) -> Sequence[Hit]:
    try:
        delivery, _ = await webhooks.delivery(page.tx, page.project_id, page.searched)
    except NotFound:
        return ()
    url = page.url(f"/webhooks/deliveries/{delivery.delivery_id}")
    kind = page._("Webhook deliveries")
    return [Hit(kind, delivery.delivery_id, url, icon="webhook", is_exact=True)]
