"""Routes for messengers and phones: platform webhooks, and start links as QR codes."""

import io
from collections import OrderedDict

import segno
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.api.body import read_body
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_core.channels.failures import ChannelNotReady, InvalidWebhook, no_bot_ready
from msgsvc_core.channels.inbound import Inbound
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import WebhookCall
from msgsvc_core.kernel.errors import RateLimitProject, Unauthorized, Unavailable
from msgsvc_core.limits import Limiter
from msgsvc_core.security.networks import customer_network

#: Side of a QR code's module, in the SVG's units, and the quiet zone around it in modules (ISO 18004).
QR_SCALE, QR_BORDER = 8, 4

#: Number of cached codes, of some 10 KB each.
KNOWN_CODES = 200

#: Seconds of the window of `limits.qr_per_minute_per_address`.
QR_WINDOW_S = 60

#: `Retry-After` for a platform's webhook call in quarantine, in seconds.
QUARANTINE_RETRY_S = 60

log = structlog.get_logger(__name__)


def channel_routes(
    *,
    channels: Channels,
    inbound: Inbound,
    limiter: Limiter,
    qr_per_minute: int,
    max_body_bytes: int,
    is_quarantined: bool,
) -> list[BaseRoute]:
    """GET /qr/{channel}/{payload}.svg, and /hooks/{channel} with the paths below it."""
    known_codes = _KnownCodes()

    async def qr(request: Request) -> Response:
        channel, payload = request.path_params["channel"], request.path_params["payload"]
        bot = await channels.find(channel) if START_PAYLOAD.fullmatch(payload) else None
        if bot is None:
            raise HTTPException(404)
        try:
            link = bot.deep_link(payload)
        except ChannelNotReady:
            raise no_bot_ready() from None
        svg = known_codes.get(link)
        if svg is None:
            await _count_code(limiter, qr_per_minute, request)
            svg = known_codes.add(link, qr_svg(link))
        return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "no-store"})

    async def hook(request: Request) -> Response:
        if is_quarantined:
            # Platforms keep what they could not deliver, for hours.
            raise Unavailable(
                "the service is in quarantine and receives nothing",
                retry_after_s=QUARANTINE_RETRY_S,
            )
        return await _receive_webhook(channels, inbound, max_body_bytes, request)

    return [
        Route("/qr/{channel}/{payload}.svg", qr),
        Route("/hooks/{channel}", hook, methods=["GET", "POST"]),
        Route("/hooks/{channel}/{path:path}", hook, methods=["GET", "POST"]),
    ]


class _KnownCodes:
    """Cache of the latest codes: browsers request the same ones repeatedly."""

    def __init__(self) -> None:
        self._codes: OrderedDict[str, bytes] = OrderedDict()

    def get(self, link: str) -> bytes | None:
        found = self._codes.get(link)
        if found is not None:
            self._codes.move_to_end(link)
        return found

    def add(self, link: str, svg: bytes) -> bytes:
        self._codes[link] = svg
        if len(self._codes) > KNOWN_CODES:
            self._codes.popitem(last=False)
        return svg


async def _count_code(limiter: Limiter, limit: int, request: Request) -> None:
    """Raises `RateLimitProject` for an address that requests too many codes: each takes some 18 ms of the
    event loop, and no key is needed."""
    network = customer_network(request.client.host if request.client else "")
    # It bounds load and protects no secret: without Redis each process counts by itself.
    window = await limiter.hit(f"qr:{network}", limit, QR_WINDOW_S, when_away="count_locally")
    if not window.allowed:
        raise RateLimitProject(
            "more than {limit} QR codes from one address in {seconds} s",
            limit=limit,
            seconds=QR_WINDOW_S,
            retry_after_s=window.retry_after_s,
        )


def qr_svg(link: str) -> bytes:
    """A QR code of `link` as an SVG with a white background, so that it scans on a dark page too."""
    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", scale=QR_SCALE, border=QR_BORDER, light="#fff", xmldecl=False
    )
    return out.getvalue()


async def _receive_webhook(
    channels: Channels, inbound: Inbound, max_body_bytes: int, request: Request
) -> Response:
    channel = await channels.find(request.path_params["channel"])
    if channel is None:
        raise HTTPException(404)
    methods = channel.capabilities.hook_methods
    if request.method not in methods:
        raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
    path, query = request.path_params.get("path", ""), request.url.query
    body = await read_body(request, max_body_bytes)
    headers = {key.lower(): value for key, value in request.headers.items()}
    whole = f"{channels.hook_url(channel)}{'/' if path else ''}{path}"
    call = WebhookCall(
        body,
        headers,
        channels.hook_secrets(channel),
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
        await inbound.receive(channel.key, update)
    answer = channel.answer_webhook(call)
    if answer is None:
        return JSONResponse({"ok": True})
    return Response(
        answer.body,
        answer.status,
        # The response echoes data of an unauthenticated caller.
        headers={"Content-Type": answer.content_type, "X-Content-Type-Options": "nosniff"},
    )
