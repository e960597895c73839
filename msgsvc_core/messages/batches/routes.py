"""POST /v1/send/batch and /v1/batches."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.kernel.errors import BillingBlocked, NotFound
from msgsvc_core.messages.batches.models import BatchAnswer, BatchStatusAnswer, SendBatchBody
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.messages.fields import BatchId

router = Router(area="messages")


@router.post(
    "/v1/send/batch", status=202, group_commit=True, shows_secrets=False, errors=(BillingBlocked,)
)
async def send_batch(
    ctx: Context, body: SendBatchBody, billing: BillingGate, batches: Batches
) -> BatchAnswer:
    """Queues up to 500 messages, each validated separately.

    Invalid messages are listed in `rejected`, with the error that `POST /v1/send` would return. When
    all accepted messages are final, `batch.completed` reports how many were sent, failed and skipped.
    `GET /v1/messages?batch_id=` lists them.
    """
    await billing.check(ctx.project_id, MESSAGE)
    return await batches.add(ctx.unit, ctx.project_id, body.messages)


@router.get("/v1/batches/{batch_id}", errors=(NotFound,))
async def get_batch(ctx: Context, batch_id: BatchId, batches: Batches) -> BatchStatusAnswer:
    """Shows the progress of a batch."""
    return BatchStatusAnswer.of(await batches.find(ctx.tx, ctx.project_id, batch_id))
