"""The ASGI application of a service."""

from collections import defaultdict

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from msgsvc_core.api.documentation import documentation_routes
from msgsvc_core.api.edge import Edge
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.envelope import envelope, http_error
from msgsvc_core.api.operations import operation_routes
from msgsvc_core.api.requests import RequestLog
from msgsvc_core.channels.pages import channel_routes
from msgsvc_core.errors import ApiError, MethodNotAllowed
from msgsvc_core.plugins import answers
from msgsvc_core.service import Service


def build_app(service: Service) -> ASGIApp:
    """Routes every endpoint and page; the lifespan starts and stops the service."""
    errors_url = service.settings.errors_url

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405 and request.method == "OPTIONS":
            return Response(status_code=204, headers=error.headers)
        return envelope(http_error(request, error), errors_url)

    async def on_api_error(_request: Request, error: Exception) -> Response:
        """For pages of plugins; endpoints have an edge of their own."""
        assert isinstance(error, ApiError)
        return envelope(error, errors_url)

    middleware = [Middleware(RequestLog, service=service)]
    if service.settings.server.cors_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(service.settings.server.cors_origins),
                allow_methods=["*"],
                allow_headers=["*"],
            )
        )
    app = Starlette(
        routes=[
            *_endpoint_routes(service),
            *operation_routes(service),
            *documentation_routes(service),
            *channel_routes(service),
            *answers(service.plugins.hook.register_pages(service=service)),
        ],
        middleware=middleware,
        exception_handlers={HTTPException: on_http_error, ApiError: on_api_error},
        lifespan=service.lifespan,
    )
    # `/v1/send/` is no path of ours, and a redirect would not be in the envelope.
    app.router.redirect_slashes = False
    return app


def _endpoint_routes(service: Service) -> list[BaseRoute]:
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for endpoint in service.endpoints:
        by_path[endpoint.path][endpoint.method] = endpoint
    edge = Edge(service)
    # A literal path comes before one with a parameter in its place: `{` sorts after letters.
    return [
        Route(path, _PathApp(edge, by_path[path], service.settings.errors_url))
        for path in sorted(by_path)
    ]


class _PathApp:
    """All methods of one path."""

    def __init__(self, edge: Edge, methods: dict[str, Endpoint], errors_url: str) -> None:
        self._edge = edge
        self._methods: dict[str, Endpoint] = dict(methods)
        if "GET" in methods:
            self._methods["HEAD"] = methods["GET"]
        self._allow = ", ".join(sorted({*self._methods, "OPTIONS"}))
        self._errors_url = errors_url

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
        error = MethodNotAllowed(f"{request.method} is not one of {self._allow}")
        error.headers["Allow"] = self._allow
        return envelope(error, self._errors_url)
