"""The element's example site, with a page for each way to use the element, and answers that tests change."""

import asyncio
import importlib.util
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from msgsvc_core.server import bind
from msgsvc_devkit.ephemeral.actors import AsyncMsgsvc

FOLDER = Path(__file__).parents[3] / "contrib" / "clients" / "signin"

#: What the element promises to run under.
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; frame-src 'none';"
    " require-trusted-types-for 'script'"
)

PAGE = """<!doctype html>
<html lang="{lang}" dir="{dir}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Shop</title>
<link rel="stylesheet" href="/own/page.css">
<script type="module" src="/static/msgsvc-signin.js"></script>
<main>
<h1>Shop</h1>
<p id="user">{user}</p>
<form action="/ordered" method="get">
<msgsvc-signin session="/signin" {attributes}><a href="/login">{title}</a></msgsvc-signin>
</form>
</main>
"""


@dataclass
class Site:
    """A running site. What is in `begun` and `told` replaces the fields of its answers."""

    url: str
    begun: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    #: Statuses with which it answers instead.
    refuses_begin: int = 0
    refuses_status: int = 0
    #: Requests for a sign-in and for its status.
    begins: int = 0
    polls: int = 0
    #: Headers of the latest POST.
    headers: dict[str, str] = field(default_factory=dict)

    def page(self, attributes: str = "", **query: str) -> str:
        return f"{self.url}/?{httpx2.QueryParams({**query, 'attributes': attributes})}"


@asynccontextmanager
async def running_site(service: AsyncMsgsvc) -> AsyncIterator[Site]:
    """The example site on a port of this machine, with a static link of the service that leads back to it."""
    listener = bind("127.0.0.1", 0)
    site = Site(f"http://127.0.0.1:{listener.getsockname()[1]}")
    with environment(MSGSVC_URL=service.base_url, MSGSVC_API_KEY=service.api_key):
        example = load_example()
        link = {"slug": "shop", "name": "Shop", "callback_url": f"{site.url}/back"}
        await example.api("POST", "/v1/auth/links", json=link)
        server = uvicorn.Server(
            uvicorn.Config(application(example, site), log_level="warning", lifespan="off")
        )
        # The test's process keeps its own.
        server.capture_signals = nullcontext  # type: ignore[method-assign] # of no arguments, as its own
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield site
        server.should_exit = server.force_exit = True
        await serving
    listener.close()


@cache
def load_example() -> Any:
    """The module, which keeps nothing of a site: it looks for the service in the environment at each call."""
    found = importlib.util.spec_from_file_location("signin_site", FOLDER / "examples" / "site.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def application(example: Any, site: Site) -> Starlette:
    """The example's routes, around which a test may change answers."""

    async def page(request: Request) -> Response:
        query = request.query_params
        html = PAGE.format(
            lang=escape(query.get("lang", "en")),
            dir=escape(query.get("dir", "ltr")),
            user=escape(request.session.get("user", "")),
            attributes=query.get("attributes", ""),
            title=escape(query.get("title", "Sign in to Shop")),
        )
        headers = {}
        if "strict" in query:
            headers["Content-Security-Policy"] = POLICY
        if "opener" in query:
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return HTMLResponse(html, headers=headers)

    async def begin(request: Request) -> Response:
        site.begins += 1
        site.headers = dict(request.headers)
        if site.refuses_begin:
            return Response(status_code=site.refuses_begin)
        return _changed(await example.begin(request), site.begun)

    async def status(request: Request) -> Response:
        site.polls += 1
        if site.refuses_status:
            return Response(status_code=site.refuses_status)
        return _changed(await example.status(request), site.told)

    async def refusing(request: Request) -> Response:
        return Response(status_code=request.path_params["status"])

    async def ordered(_request: Request) -> Response:
        return HTMLResponse(
            "<!doctype html><html lang=en><title>Ordered</title><p id=ordered>Ordered</p>"
        )

    own = [
        Route("/", page),
        Route("/signin", begin, methods=["POST"]),
        Route("/signin/{id}", status),
        Route("/ordered", ordered),
        # In the service's place.
        Route("/refusing/{status:int}/{path:path}", refusing, methods=["GET", "POST"]),
        Mount("/own", StaticFiles(directory=Path(__file__).parent / "static")),
    ]
    return Starlette(routes=[*own, *example.ROUTES], middleware=[example.SESSIONS])


def _changed(answer: Response, fields: dict[str, Any]) -> Response:

    return JSONResponse({**json.loads(bytes(answer.body)), **fields})


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
