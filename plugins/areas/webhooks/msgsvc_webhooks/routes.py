"""/v1/webhooks."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import BadRequest, Conflict, InvalidUrl, NotFound
from msgsvc_webhooks.models import (
    CreateWebhookBody,
    DeliveryId,
    DeliveryQuery,
    NewWebhookAnswer,
    ReplayWebhookBody,
    RotatedWebhookSecretAnswer,
    UpdateWebhookBody,
    WebhookAnswer,
    WebhookDeliveryAnswer,
    WebhookDeliveryList,
    WebhookId,
    WebhookList,
    WebhookReplayAnswer,
)
from msgsvc_webhooks.replays import Replays
from msgsvc_webhooks.service import Webhooks

router = Router(
    area="webhooks",
    description="Where events are sent, and the journal of deliveries.",
    group="developers",
)


@router.post(
    "/v1/webhooks",
    status=201,
    errors=(Conflict, InvalidUrl),
    audited=lambda _: _("Webhook created"),
)
async def create_webhook(
    ctx: Context, body: CreateWebhookBody, webhooks: Webhooks
) -> NewWebhookAnswer:
    """Creates a webhook and returns its signing secret, once."""
    webhook, secret = await webhooks.create(ctx.tx, ctx.project_id, body)
    return NewWebhookAnswer.with_secret(webhook, secret)


@router.get("/v1/webhooks", errors=(BadRequest,))
async def list_webhooks(ctx: Context, query: PageQuery, webhooks: Webhooks) -> WebhookList:
    """Lists the project's webhooks, newest first."""
    found = await webhooks.page(ctx.tx, ctx.project_id, query.begin("whe"), query.fetch_limit)
    page, following = query.cut(found, lambda webhook: webhook.webhook_id)
    return WebhookList(
        data=[WebhookAnswer.of(webhook) for webhook in page],
        next_cursor=following,
    )


@router.get("/v1/webhooks/{webhook_id}", errors=(NotFound,))
async def get_webhook(ctx: Context, webhook_id: WebhookId, webhooks: Webhooks) -> WebhookAnswer:
    """Shows one webhook, without its secret."""
    return WebhookAnswer.of(await webhooks.get(ctx.tx, ctx.project_id, webhook_id))


@router.put(
    "/v1/webhooks/{webhook_id}",
    errors=(InvalidUrl, NotFound),
    audited=lambda _: _("Webhook changed"),
)
async def update_webhook(
    ctx: Context, webhook_id: WebhookId, body: UpdateWebhookBody, webhooks: Webhooks
) -> WebhookAnswer:
    """Changes a webhook. Disabling it cancels queued deliveries."""
    webhook = await webhooks.update(ctx.tx, ctx.project_id, webhook_id, body)
    return WebhookAnswer.of(webhook)


@router.delete(
    "/v1/webhooks/{webhook_id}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Webhook deleted"),
)
async def delete_webhook(ctx: Context, webhook_id: WebhookId, webhooks: Webhooks) -> None:
    """Deletes a webhook and its secret, and cancels queued deliveries."""
    await webhooks.delete(ctx.tx, ctx.project_id, webhook_id)


@router.post(
    "/v1/webhooks/{webhook_id}/rotate-secret",
    errors=(Conflict, NotFound),
    audited=lambda _: _("Webhook secret rotated"),
)
async def rotate_webhook_secret(
    ctx: Context, webhook_id: WebhookId, webhooks: Webhooks
) -> RotatedWebhookSecretAnswer:
    """Rotates the signing secret; the new one is returned once. The previous one also signs for 24 hours."""
    secret, until_ms = await webhooks.rotate_secret(ctx.tx, ctx.project_id, webhook_id)
    return RotatedWebhookSecretAnswer(
        webhook_id=webhook_id, secret=secret, previous_valid_until=to_rfc3339(until_ms)
    )


@router.post(
    "/v1/webhooks/{webhook_id}/test",
    status=202,
    shows_secrets=False,
    errors=(Conflict, NotFound),
)
async def send_test_to_webhook(
    ctx: Context, webhook_id: WebhookId, webhooks: Webhooks
) -> WebhookDeliveryAnswer:
    """Sends a signed `webhook.test` to a webhook now, whatever its `events`.

    It is attempted once; `GET /v1/webhooks/deliveries/{delivery_id}` shows the result.
    """
    delivery = await webhooks.send_test(ctx.tx, ctx.project_id, webhook_id)
    return WebhookDeliveryAnswer.of(delivery, [])


@router.post(
    "/v1/webhooks/{webhook_id}/replay",
    status=202,
    shows_secrets=False,
    errors=(Conflict, NotFound),
)
async def replay_webhook(
    ctx: Context, webhook_id: WebhookId, body: ReplayWebhookBody, replays: Replays
) -> WebhookReplayAnswer:
    """Redelivers events since a time that were not delivered.

    Events to which the webhook subscribes now and that had no delivery get one; deliveries that failed
    or were cancelled are restarted under their id. This is done in the background, after newer events;
    `events` is the number of events that are checked.
    """
    return await replays.start(ctx.tx, ctx.project_id, webhook_id, body)


@router.get("/v1/webhooks/{webhook_id}/deliveries", errors=(BadRequest, NotFound))
async def list_webhook_deliveries(
    ctx: Context, webhook_id: WebhookId, query: DeliveryQuery, webhooks: Webhooks
) -> WebhookDeliveryList:
    """Lists the deliveries of a webhook, newest first, with every attempt and its response."""
    found = await webhooks.deliveries(ctx.tx, ctx.project_id, webhook_id, query)
    page, following = query.cut(found, lambda entry: entry[0].delivery_id)
    return WebhookDeliveryList(
        data=[WebhookDeliveryAnswer.of(delivery, attempts) for delivery, attempts in page],
        next_cursor=following,
    )


@router.get("/v1/webhooks/deliveries/{delivery_id}", errors=(NotFound,))
async def get_webhook_delivery(
    ctx: Context, delivery_id: DeliveryId, webhooks: Webhooks
) -> WebhookDeliveryAnswer:
    """Shows one delivery, with every attempt and its response."""
    delivery, attempts = await webhooks.delivery(ctx.tx, ctx.project_id, delivery_id)
    return WebhookDeliveryAnswer.of(delivery, attempts)


@router.post(
    "/v1/webhooks/deliveries/{delivery_id}/redeliver",
    status=202,
    shows_secrets=False,
    errors=(Conflict, NotFound),
)
async def redeliver_webhook_delivery(
    ctx: Context, delivery_id: DeliveryId, webhooks: Webhooks
) -> WebhookDeliveryAnswer:
    """Redelivers a delivery; one that waits for a retry is attempted at once.

    It has the same delivery id and body and a new signature, and starts the retry schedule again.
    """
    delivery, attempts = await webhooks.redeliver(ctx.tx, ctx.project_id, delivery_id)
    return WebhookDeliveryAnswer.of(delivery, attempts)
