"""/v1/tickets/bulk-actions."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.bulk_actions.models import BulkActionAnswer, BulkActionId, BulkActionList
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_helpdesk.bulk_actions.actions import TicketBulkActions
from msgsvc_helpdesk.bulk_actions.models import StartTicketBulkActionBody, shown

router = Router(area="helpdesk")


@router.post("/v1/tickets/bulk-actions", status=202, errors=(NotFound,))
async def start_ticket_bulk_action(
    ctx: Context, body: StartTicketBulkActionBody, bulk_actions: TicketBulkActions
) -> BulkActionAnswer:
    """Changes many tickets in the background: assignee, status, priority or tags.

    First it writes down which tickets it is about. Each is changed as by a request of its own, with its
    events.
    """
    return shown(await bulk_actions.start(ctx.tx, ctx.project_id, body))


@router.get("/v1/tickets/bulk-actions", errors=(BadRequest,))
async def list_ticket_bulk_actions(
    ctx: Context, query: PageQuery, bulk_actions: TicketBulkActions
) -> BulkActionList:
    """Lists the project's bulk actions on tickets of the last 30 days, newest first."""
    found = await bulk_actions.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda bulk: bulk.bulk_action_id)
    return BulkActionList(data=[shown(bulk) for bulk in page], next_cursor=following)


@router.get("/v1/tickets/bulk-actions/{bulk_action_id}", errors=(NotFound,))
async def get_ticket_bulk_action(
    ctx: Context, bulk_action_id: BulkActionId, bulk_actions: TicketBulkActions
) -> BulkActionAnswer:
    """Shows the progress of a bulk action on tickets."""
    bulk = await bulk_actions.get(ctx.tx, ctx.project_id, bulk_action_id)
    return shown(bulk)


@router.post("/v1/tickets/bulk-actions/{bulk_action_id}/cancel", errors=(Conflict, NotFound))
async def cancel_ticket_bulk_action(
    ctx: Context, bulk_action_id: BulkActionId, bulk_actions: TicketBulkActions
) -> BulkActionAnswer:
    """Cancels a bulk action on tickets. Changes so far stay."""
    bulk = await bulk_actions.cancel(ctx.tx, ctx.project_id, bulk_action_id)
    return shown(bulk)
