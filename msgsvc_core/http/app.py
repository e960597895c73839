"""The ASGI application of a service."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.envelope import envelope, http_error
from msgsvc_core.config.settings import Settings
from msgsvc_core.http.base_path import BasePath, base_path, path_within
from msgsvc_core.http.dispatcher import EndpointDispatcher
from msgsvc_core.http.documentation import NotFoundPage
from msgsvc_core.http.paths import Paths
from msgsvc_core.http.proxies import TrustedProxies
from msgsvc_core.http.requests import RequestLog
from msgsvc_core.kernel.errors import ApiError, MethodNotAllowed, NotFound, ValidationFailed
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.security.networks import Networks
from msgsvc_core.telemetry.logs import RequestLines
from msgsvc_core.telemetry.request_metrics import RequestMetrics

#: Name of a plugin's route to which `/` redirects.
HOME = "home"


Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def build_app(
    *,
    endpoints: Sequence[Endpoint],
    routes: Sequence[BaseRoute],
    edge: EndpointDispatcher,
    not_found: NotFoundPage,
    metrics: RequestMetrics,
    settings: Settings,
    lifespan: Lifespan,
    tracing: Tracing | None,
) -> ASGIApp:
    """Routes every endpoint, and `routes`: the pages."""

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405 and request.method == "OPTIONS":
            return Response(status_code=204, headers=error.headers)
        is_opened = error.status_code == 405 and request.method in {"GET", "HEAD"}
        if (error.status_code == 404 or is_opened) and not_found.is_for(request):
            return not_found.answer(request, error)
        return await edge.refuse(http_error(request, error), request)

    async def on_api_error(_request: Request, error: Exception) -> Response:
        """For pages of plugins; endpoints have an edge of their own."""
        assert isinstance(error, ApiError)
        return envelope(error, settings.errors_url)

    middleware = _middleware(settings, metrics, tracing)
    paths = _endpoint_paths(endpoints, edge)
    app = Starlette(
        routes=list(routes),
        middleware=middleware,
        exception_handlers={HTTPException: on_http_error, ApiError: on_api_error},
        lifespan=lifespan,
    )
    # `/v1/send/` is no path of ours, and a redirect would not be in the envelope.
    app.router.redirect_slashes = False
    behind = {path: _behind(middleware, paths[path]) for path in paths}
    router = _PathRouter(behind, app, _behind(middleware, _Unstorable(edge)))
    if not (path := base_path(settings.base_url)):
        return router
    pages = [each.path for each in app.routes if isinstance(each, Route | Mount)]
    return BasePath(router, path, [*paths, *pages])


def _middleware(
    settings: Settings, metrics: RequestMetrics, tracing: Tracing | None
) -> list[Middleware]:
    """What surrounds endpoints and pages, the outermost first."""
    middleware = [
        Middleware(
            RequestLog,
            errors_url=settings.errors_url,
            lines=RequestLines.of(settings.log),
            metrics=metrics,
            tracing=tracing,
            trust_incoming=settings.tracing.trust_incoming,
            added=_transport_headers(settings),
        )
    ]
    # Without a proxy to trust there is nothing to look at, and so nothing to pay.
    proxies, on_unix = Networks(settings.server.trusted_proxies), settings.server.uds is not None
    if proxies or on_unix:
        middleware.insert(0, Middleware(TrustedProxies, proxies=proxies, on_unix=on_unix))
    if settings.server.cors_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.server.cors_origins),
                allow_methods=["*"],
                allow_headers=["*"],
            )
        )
    return middleware


def _transport_headers(settings: Settings) -> list[tuple[bytes, bytes]]:
    """RFC 6797; over plain http browsers ignore it."""
    seconds = settings.server.hsts_seconds
    if not seconds or not settings.base_url.startswith("https://"):
        return []
    return [(b"strict-transport-security", f"max-age={seconds}".encode())]


def home_of(pages: Sequence[BaseRoute]) -> str | None:
    """The path of the page that `/` leads to, if a plugin brings one."""
    found = (page for page in pages if isinstance(page, Route) and page.name == HOME)
    return next((page.path for page in found), None)


def _behind(middleware: Sequence[Middleware], app: ASGIApp) -> ASGIApp:
    for added in reversed(middleware):
        app = added.cls(app, *added.args, **added.kwargs)
    return app


def _endpoint_paths(
    endpoints: Sequence[Endpoint], edge: EndpointDispatcher
) -> dict[str, "_PathEndpoint"]:
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for endpoint in endpoints:
        by_path[endpoint.path][endpoint.method] = endpoint
    # A literal path comes before one with a parameter in its place: `{` sorts after letters.
    return {path: _PathEndpoint(edge, by_path[path]) for path in sorted(by_path)}


class _PathRouter:
    """Dispatches endpoints directly, and everything else through Starlette's router.

    The router tries one regular expression after another, inside middleware that catches what our edge has
    caught already; together that took a tenth of the time of `POST /v1/send`.
    """

    def __init__(
        self, endpoints: Mapping[str, ASGIApp], others: ASGIApp, unstorable: ASGIApp
    ) -> None:
        self._unstorable = unstorable
        self._literal = {path: app for path, app in endpoints.items() if "{" not in path}
        self._others = others
        self._paths = Paths[ASGIApp]()
        for path, app in endpoints.items():
            self._paths.add(path, app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app_for(scope)(scope, receive, send)

    def _app_for(self, scope: Scope) -> ASGIApp:
        if scope["type"] != "http":
            return self._others
        path = path_within(scope)
        if "\0" in path or b"%00" in scope["query_string"]:
            return self._unstorable
        if (literal := self._literal.get(path)) is not None:
            return literal
        if (found := self._paths.match(path)) is None:
            return self._others
        app, scope["path_params"] = found
        return app


class _Unstorable:
    """Answers for every endpoint and page what holds NUL, which PostgreSQL takes nowhere."""

    def __init__(self, edge: EndpointDispatcher) -> None:
        self._edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error: ApiError = ValidationFailed("a text holds NUL", field="query")
        if "\0" in scope["path"]:
            error = NotFound("there is nothing at a path that holds NUL")
        response = await self._edge.refuse(error, Request(scope, receive))
        await response(scope, receive, send)


class _PathEndpoint:
    """All methods of one path."""

    def __init__(self, edge: EndpointDispatcher, methods: dict[str, Endpoint]) -> None:
        self._edge = edge
        self._methods: dict[str, Endpoint] = dict(methods)
        if "GET" in methods:
            self._methods["HEAD"] = methods["GET"]
        self._allow = ", ".join(sorted({*self._methods, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        endpoint = self._methods.get(request.method)
        if endpoint is not None:
            request.scope["state"]["endpoint"] = endpoint.path
            return await self._edge.answer(endpoint, request)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": self._allow})
        error = MethodNotAllowed(
            "{method} is not one of {methods}", method=request.method, methods=self._allow
        )
        error.headers["Allow"] = self._allow
        return await self._edge.refuse(error, request)
