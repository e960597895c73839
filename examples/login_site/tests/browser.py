"""A browser on the site, which keeps its cookies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from examples.login_site.tests.fake_service import FakeService

JSON = {"Accept": "application/json"}


@dataclass
class Browser:
    """Somebody's browser on the site, and the messenger service behind it."""

    http: aiohttp.ClientSession
    service: FakeService
    session_id: str = ""

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        async with self.http.get(path, **options) as response:
            return response.status, await response.text()

    async def post(self, path: str, **fields: str) -> tuple[int, str]:
        async with self.http.post(path, data=fields) as response:
            return response.status, await response.text()

    async def json(self, path: str) -> Any:
        async with self.http.get(path) as response:
            return await response.json()

    async def begin(self, kind: str) -> dict[str, Any]:
        """Press the button of variant 2 (`link`) or 3 (`qr`)."""
        async with self.http.post("/login/session", data={"kind": kind}, headers=JSON) as response:
            answer: dict[str, Any] = await response.json()
        self.session_id = answer["session_id"]
        return answer

    async def begin_hosted(self) -> str:
        """Press the button that leads to the service's own page; returns the state in its address."""
        async with self.http.get("/login", allow_redirects=False) as response:
            page = URL(response.headers["Location"])
        assert page.path == "/login/demo"
        return page.query["state"]

    @property
    def state(self) -> str:
        """The state the site sent to the service; a browser never sees it before the callback."""
        return str(self.service.sessions[self.session_id]["state"])


def new_http(site_url: str) -> aiohttp.ClientSession:
    # unsafe: aiohttp drops the cookies of a bare address like 127.0.0.1 otherwise.
    return aiohttp.ClientSession(site_url, cookie_jar=aiohttp.CookieJar(unsafe=True))
