"""/v1/tickets/blocklist."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import SubscriberId
from msgsvc_core.kernel.errors import BadRequest, NotFound, SubscriberNotFound
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.models import BlockCustomerBody
from msgsvc_helpdesk.views import BlockedAnswer, BlockedList

router = Router(area="helpdesk")


@router.get("/v1/tickets/blocklist", errors=(BadRequest,))
async def list_blocked_customers(
    ctx: Context, query: PageQuery, blocklist: Blocklist
) -> BlockedList:
    """Lists subscribers whose messages open no tickets, the newest subscriber first."""
    found = await blocklist.page(ctx.tx, ctx.project_id, query.after, query.fetch_limit)
    page, following = query.cut(found, lambda blocked: blocked.subscriber_id, by_time=False)
    return BlockedList(data=[BlockedAnswer.of(one) for one in page], next_cursor=following)


@router.put(
    "/v1/tickets/blocklist/{subscriber_id}",
    errors=(SubscriberNotFound,),
    audited=lambda _: _("Customer blocked"),
)
async def block_customer(
    ctx: Context, subscriber_id: SubscriberId, body: BlockCustomerBody, blocklist: Blocklist
) -> BlockedAnswer:
    """Blocks a subscriber: their messages open or continue no ticket. They are not notified."""
    return BlockedAnswer.of(
        await blocklist.add(ctx.tx, ctx.project_id, subscriber_id, body.reason or "")
    )


@router.delete(
    "/v1/tickets/blocklist/{subscriber_id}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Customer unblocked"),
)
async def unblock_customer(ctx: Context, subscriber_id: SubscriberId, blocklist: Blocklist) -> None:
    """Lets a subscriber's messages open tickets again."""
    await blocklist.remove(ctx.tx, ctx.project_id, subscriber_id)
