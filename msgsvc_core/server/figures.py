"""GET /metrics and GET /healthz of a process without the API: a worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from msgsvc_core.api.envelope import envelope, http_error
from msgsvc_core.config.settings import Settings
from msgsvc_core.http.metrics import metrics_routes
from msgsvc_core.http.proxies import TrustedProxies
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.security.networks import Networks
from msgsvc_core.server.connection_limits import ConnectionLimits
from msgsvc_core.server.listener import bind
from msgsvc_core.server.server import Server
from msgsvc_core.telemetry import Metrics


@asynccontextmanager
async def serving_metrics(
    metrics: Metrics, settings: Settings, port: int | None = None
) -> AsyncIterator[int]:
    """Serves `metrics` on `metrics.worker_host` while the block runs; yields the port.

    `port` overrides `metrics.worker_port`, for further processes of a worker on one machine; 0 selects a free
    port. With neither, nothing is served, and the yielded port is 0.
    Raises `SettingsError` if the port is taken.
    """
    wanted = settings.metrics.worker_port if port is None else port
    if port is None and not wanted:
        yield 0
        return
    guard = ConnectionLimits(settings.server, settings.errors_url, metrics)
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    server = Server(
        _figures_app(metrics, settings),
        guard,
        listening=lambda _sockets: ready.set_result(None),
        signals=False,
    )
    with bind(settings.metrics.worker_host, wanted, "metrics.worker_port") as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await running


def _figures_app(metrics: Metrics, settings: Settings) -> ASGIApp:
    errors_url = settings.errors_url

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return envelope(http_error(request, error), errors_url)

    async def on_api_error(_request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return envelope(error, errors_url)

    proxies = Networks(settings.server.trusted_proxies)
    return Starlette(
        routes=[Route("/healthz", healthz), *metrics_routes(metrics, settings.metrics)],
        middleware=[Middleware(TrustedProxies, proxies=proxies)],
        exception_handlers={HTTPException: on_http_error, ApiError: on_api_error},
    )
