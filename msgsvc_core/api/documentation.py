"""GET /openapi.json, and the same for people: /docs and /docs/errors, with nothing from elsewhere."""

from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.openapi import errors_of, openapi
from msgsvc_core.service import Service

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent

#: Pages load only from us, and run no script at all.
_POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'"}


def documentation_routes(service: Service) -> list[BaseRoute]:
    """The routes that describe the service."""
    environment = cache(_templates)

    @cache
    def document() -> dict[str, Any]:
        return openapi(service.endpoints, service.settings.base_url)

    async def openapi_json(_request: Request) -> Response:
        return JSONResponse(document())

    async def docs(_request: Request) -> Response:
        return _page(environment(), "docs.html", areas=_areas(service), document=document())

    async def errors(_request: Request) -> Response:
        return _page(environment(), "errors.html", errors=list(service.errors))

    async def stylesheet(_request: Request) -> Response:
        return FileResponse(_FOLDER / "static" / "docs.css", media_type="text/css")

    async def front_door(_request: Request) -> Response:
        # Relative, so that it is right below the path of an application that mounts us.
        return Response(status_code=307, headers={"Location": "docs"})

    return [
        Route("/", front_door),
        Route("/openapi.json", openapi_json),
        Route("/docs", docs),
        Route("/docs/errors", errors),
        Route("/docs/docs.css", stylesheet),
    ]


def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader  # noqa: PLC0415 - 2 MiB, only for pages

    return Environment(
        loader=FileSystemLoader(_FOLDER / "templates"), autoescape=True, trim_blocks=True
    )


def _page(environment: "Environment", template: str, **values: Any) -> Response:
    return HTMLResponse(environment.get_template(template).render(**values), headers=_POLICY)


def _areas(service: Service) -> list[tuple[str, list[tuple[Endpoint, list[Any]]]]]:
    endpoints = sorted(service.endpoints, key=lambda e: (e.area, e.path, e.method))
    return [
        (area, [(endpoint, errors_of(endpoint)) for endpoint in group])
        for area, group in groupby(endpoints, key=lambda endpoint: endpoint.area)
    ]
