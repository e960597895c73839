"""Addresses that messengers and people's phones use: platform webhooks, and links as QR codes."""

import io

import segno
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.api.body import read_body
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_core.channels.failures import ChannelNotReady, InvalidWebhook, no_bot_ready
from msgsvc_core.channels.updates import WebhookCall
from msgsvc_core.errors import Unauthorized
from msgsvc_core.service import Service

#: Side of a QR code's module, in the SVG's units, and the quiet zone around it in modules (ISO 18004).
QR_SCALE, QR_BORDER = 8, 4

log = structlog.get_logger(__name__)


def channel_routes(service: Service) -> list[BaseRoute]:
    """GET /qr/{channel}/{payload}.svg, and /hooks/{channel} with what is below it."""

    async def qr(request: Request) -> Response:
        channel, payload = request.path_params["channel"], request.path_params["payload"]
        bot = await service.channels.find(channel) if START_PAYLOAD.fullmatch(payload) else None
        if bot is None:
            raise HTTPException(404)
        try:
            svg = qr_svg(bot.deep_link(payload))
        except ChannelNotReady:
            raise no_bot_ready() from None
        return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "no-store"})

    async def hook(request: Request) -> Response:
        return await _take(service, request)

    return [
        Route("/qr/{channel}/{payload}.svg", qr),
        Route("/hooks/{channel}", hook, methods=["GET", "POST"]),
        Route("/hooks/{channel}/{path:path}", hook, methods=["GET", "POST"]),
    ]


def qr_svg(link: str) -> bytes:
    """A QR code of `link` as an SVG with a white ground, so that it scans on a dark page too."""
    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", scale=QR_SCALE, border=QR_BORDER, light="#fff", xmldecl=False
    )
    return out.getvalue()


async def _take(service: Service, request: Request) -> Response:
    channel = await service.channels.find(request.path_params["channel"])
    if channel is None:
        raise HTTPException(404)
    methods = channel.capabilities.hook_methods
    if request.method not in methods:
        raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
    path, query = request.path_params.get("path", ""), request.url.query
    body = await read_body(
        request.receive,
        request.headers.get("content-length", "0"),
        service.settings.server.max_body_bytes,
    )
    headers = {key.lower(): value for key, value in request.headers.items()}
    whole = f"{service.channels.hook_url(channel)}{'/' if path else ''}{path}"
    call = WebhookCall(
        body,
        headers,
        service.channels.hook_secrets(channel),
        method=request.method,
        path=path,
        query=dict(request.query_params),
        url=f"{whole}?{query}" if query else whole,
    )
    try:
        updates = channel.parse_update(call)
    except InvalidWebhook as error:
        log.warning("webhook_refused", channel=channel.key, error=str(error))
        raise Unauthorized("this call is not from the messenger's platform") from None
    for update in updates:
        await service.inbound.receive(channel.key, update)
    answer = channel.answer_webhook(call)
    if answer is None:
        return JSONResponse({"ok": True})
    return Response(
        answer.body,
        answer.status,
        # What it echoes came from whoever called.
        headers={"Content-Type": answer.content_type, "X-Content-Type-Options": "nosniff"},
    )
