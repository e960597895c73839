"""A browser on the site, which keeps its cookies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from examples.login_site.tests.fake_service import FakeService


@dataclass
class Browser:
    """Somebody's browser on the site, and the messenger service behind it."""

    http: aiohttp.ClientSession
    service: FakeService
    session_id: str = ""
    status_url: str = ""

    async def get(self, path: str, **options: Any) -> tuple[int, str]:
        async with self.http.get(path, **options) as response:
            return response.status, await response.text()

    async def post(self, path: str, **fields: str) -> tuple[int, str]:
        async with self.http.post(path, data=fields) as response:
            return response.status, await response.text()

    async def json(self, path: str) -> Any:
        async with self.http.get(path) as response:
            return await response.json()

    async def begin(self) -> dict[str, Any]:
        """Press the button, as the element does; returns what it shows."""
        async with self.http.post("/signin") as response:
            answer: dict[str, Any] = await response.json()
        self.session_id = answer["links"]["messenger_a"].split("/")[-2]
        self.status_url = answer["status_url"]
        return answer

    async def begin_hosted(self) -> str:
        """Follow the link to the service's own page; returns the state in its address."""
        async with self.http.get("/login", allow_redirects=False) as response:
            page = URL(response.headers["Location"])
        assert page.path == "/login/demo"
        return page.query["state"]


def new_http(site_url: str) -> aiohttp.ClientSession:
    # unsafe: aiohttp drops the cookies of a bare address like 127.0.0.1 otherwise.
    return aiohttp.ClientSession(site_url, cookie_jar=aiohttp.CookieJar(unsafe=True))
