"""/v1/gateways."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_gateway.models import (
    CreateGatewayBody,
    GatewayAnswer,
    GatewayId,
    GatewayList,
    GatewayMessageAnswer,
    GatewayMessageList,
    GatewayUrlAnswer,
    NewGatewayAnswer,
    UpdateGatewayBody,
)
from msgsvc_gateway.service import Gateways

router = Router(
    area="gateways",
    description="Gateways by which identity servers send their codes.",
    group="sign_in",
)


@router.post("/v1/gateways", status=201, errors=(Conflict,), audited=lambda _: _("Gateway created"))
async def create_gateway(
    ctx: Context, body: CreateGatewayBody, gateways: Gateways
) -> NewGatewayAnswer:
    """Creates a gateway and returns its URL, once.

    Enter the URL where the sender asks for that of an HTTP provider of SMS or email.
    """
    gateway, url = await gateways.create(ctx.tx, ctx.project_id, body)
    return NewGatewayAnswer.with_url(gateway, url)


@router.get("/v1/gateways", errors=(BadRequest,))
async def list_gateways(ctx: Context, query: PageQuery, gateways: Gateways) -> GatewayList:
    """Lists the project's gateways, newest first."""
    found = await gateways.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda gateway: gateway.gateway_id)
    return GatewayList(data=[GatewayAnswer.of(one) for one in page], next_cursor=following)


@router.get("/v1/gateways/{gateway_id}", errors=(NotFound,))
async def get_gateway(ctx: Context, gateway_id: GatewayId, gateways: Gateways) -> GatewayAnswer:
    """Shows a gateway, without the secret in its URL."""
    return GatewayAnswer.of(await gateways.get(ctx.tx, ctx.project_id, gateway_id))


@router.patch(
    "/v1/gateways/{gateway_id}", errors=(NotFound,), audited=lambda _: _("Gateway changed")
)
async def update_gateway(
    ctx: Context, gateway_id: GatewayId, body: UpdateGatewayBody, gateways: Gateways
) -> GatewayAnswer:
    """Changes a gateway; omitted fields stay unchanged. Messages in progress keep their channels."""
    return GatewayAnswer.of(await gateways.update(ctx.tx, ctx.project_id, gateway_id, body))


@router.delete(
    "/v1/gateways/{gateway_id}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Gateway deleted"),
)
async def delete_gateway(ctx: Context, gateway_id: GatewayId, gateways: Gateways) -> None:
    """Deletes a gateway with its messages; its URL is no longer accepted."""
    await gateways.delete(ctx.tx, ctx.project_id, gateway_id)


@router.post(
    "/v1/gateways/{gateway_id}/rotate-url",
    errors=(NotFound,),
    audited=lambda _: _("Gateway URL replaced"),
)
async def rotate_gateway_url(
    ctx: Context, gateway_id: GatewayId, gateways: Gateways
) -> GatewayUrlAnswer:
    """Replaces the secret in a gateway's URL; the new URL is returned once.

    The previous URL is accepted for 24 more hours; URLs replaced before it stop working.
    """
    gateway, url, until_ms = await gateways.rotate_url(ctx.tx, ctx.project_id, gateway_id)
    return GatewayUrlAnswer(
        gateway_id=gateway.gateway_id, url=url, previous_valid_until=to_rfc3339(until_ms)
    )


@router.get("/v1/gateways/{gateway_id}/messages", errors=(BadRequest, NotFound))
async def list_gateway_messages(
    ctx: Context, gateway_id: GatewayId, query: PageQuery, gateways: Gateways
) -> GatewayMessageList:
    """Lists the messages of the last seven days that were sent through a gateway, newest first."""
    found = await gateways.messages(ctx.tx, ctx.project_id, gateway_id, query)
    page, following = query.cut(found, lambda message: message.message_id)
    return GatewayMessageList(
        data=[GatewayMessageAnswer.of(one) for one in page], next_cursor=following
    )
