"""GET /metrics, restricted to operators (docs/decisions/0010-metrics.md)."""

import hmac
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.config.sections import MetricsSettings
from msgsvc_core.http.proxies import FOUND_BY_PROXY, PROXY_HEADERS
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_core.security.networks import Networks, peer_address
from msgsvc_core.telemetry import Metrics


def metrics_routes(metrics: Metrics, settings: MetricsSettings) -> list[BaseRoute]:
    """GET /metrics."""
    is_operator = operators_of(settings)

    async def show(request: Request) -> Response:
        if not is_operator(request):
            raise Forbidden("metrics are for those whom the operator lets in (setting `metrics`)")
        text, content_type = await metrics.scrape(request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": content_type})

    return [Route("/metrics", show)]


def operators_of(settings: MetricsSettings) -> Callable[[Request], bool]:
    """Whether a request may see the installation's internal state."""
    allowed = Networks(settings.allow)
    token = settings.token.get_secret_value().encode() if settings.token else None
    return lambda request: _has_token(request, token) or _is_near(request, allowed)


def _has_token(request: Request, token: bytes | None) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return (
        token is not None
        and scheme.lower() == "bearer"
        and hmac.compare_digest(given.strip().encode(), token)
    )


def _is_near(request: Request, allowed: Networks) -> bool:
    """Whether the caller's address is allowed, and is really the caller's.

    A local proxy that is not listed in `server.trusted_proxies`, or does not forward the client address,
    makes every client look local.
    """
    through_unknown_proxy = any(name in request.headers for name in PROXY_HEADERS)
    if through_unknown_proxy and not request.scope.get("state", {}).get(FOUND_BY_PROXY):
        return False
    address = peer_address(request.client.host) if request.client else None
    return address is not None and address in allowed
