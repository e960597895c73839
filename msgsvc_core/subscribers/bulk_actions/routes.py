"""/v1/subscribers/bulk-actions."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.bulk_actions.models import BulkActionAnswer, BulkActionId, BulkActionList
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.subscribers.bulk_actions.models import (
    ConfirmBulkActionBody,
    StartBulkActionBody,
    shown,
)
from msgsvc_core.subscribers.bulk_actions.service import BulkActions

router = Router(area="subscribers")


@router.post(
    "/v1/subscribers/bulk-actions", status=202, shows_secrets=False, errors=(Conflict, NotFound)
)
async def start_bulk_action(
    ctx: Context, body: StartBulkActionBody, bulk_actions: BulkActions
) -> BulkActionAnswer:
    """Changes many subscribers in the background: adds or removes a tag, or erases them.

    First it writes down whom it is about. An erasure then waits, up to a day, until you confirm their number.
    """
    return shown(await bulk_actions.start(ctx.tx, ctx.project_id, body))


@router.get("/v1/subscribers/bulk-actions", errors=(BadRequest,))
async def list_bulk_actions(
    ctx: Context, query: PageQuery, bulk_actions: BulkActions
) -> BulkActionList:
    """Lists the project's bulk actions of the last 30 days, newest first."""
    found = await bulk_actions.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda bulk: bulk.bulk_action_id)
    return BulkActionList(data=[shown(bulk) for bulk in page], next_cursor=following)


@router.get("/v1/subscribers/bulk-actions/{bulk_action_id}", errors=(NotFound,))
async def get_bulk_action(
    ctx: Context, bulk_action_id: BulkActionId, bulk_actions: BulkActions
) -> BulkActionAnswer:
    """Shows the progress of a bulk action."""
    return shown(await bulk_actions.get(ctx.tx, ctx.project_id, bulk_action_id))


@router.post(
    "/v1/subscribers/bulk-actions/{bulk_action_id}/confirm",
    shows_secrets=False,
    errors=(Conflict, NotFound),
)
async def confirm_bulk_action(
    ctx: Context,
    bulk_action_id: BulkActionId,
    body: ConfirmBulkActionBody,
    bulk_actions: BulkActions,
) -> BulkActionAnswer:
    """Lets an erasure begin, which can't be undone."""
    bulk = await bulk_actions.confirm(ctx.tx, ctx.project_id, bulk_action_id, body.total)
    return shown(bulk)


@router.post(
    "/v1/subscribers/bulk-actions/{bulk_action_id}/cancel",
    shows_secrets=False,
    errors=(Conflict, NotFound),
)
async def cancel_bulk_action(
    ctx: Context, bulk_action_id: BulkActionId, bulk_actions: BulkActions
) -> BulkActionAnswer:
    """Cancels a bulk action. Changes so far stay."""
    return shown(await bulk_actions.cancel(ctx.tx, ctx.project_id, bulk_action_id))
