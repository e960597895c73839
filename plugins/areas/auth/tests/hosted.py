"""Browsers without scripts on the hosted page, and what they see."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import unescape
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import httpx2

from msgsvc_core.service import Service

NewBrowser = Callable[..., Any]


class Browser:
    """Somebody's browser, which keeps its cookies, as one that is not sent on by itself."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        #: What was shown last.
        self.shown: httpx2.Response

    async def open(self, path: str = "/login/shop", **options: Any) -> httpx2.Response:
        self.shown = await self.http.get(path, **options)
        return self.shown

    async def reload(self) -> httpx2.Response:
        """As the page reloads itself where there are no scripts."""
        return await self.open(self.find(r'http-equiv="refresh" content="\d+; url=([^"]+)"'))

    async def try_again(self) -> httpx2.Response:
        """Presses the page's one button, and goes where it leads."""
        self.shown = await self.http.post(self.find(r'<form method="post" action="([^"]+)"'))
        if self.shown.status_code == 303:
            return await self.open(self.shown.headers["Location"])
        return self.shown

    async def status(self, **changed: Any) -> httpx2.Response:
        """What the page's element asks for."""
        return await self.http.get(self._status_url.path, params=self.poll(**changed))

    def poll(self, **changed: Any) -> dict[str, Any]:
        return {**dict(parse_qsl(self._status_url.query)), **changed}

    @property
    def _status_url(self) -> SplitResult:
        return urlsplit(self.find(r' status-url="([^"]+)"'))

    def link(self, channel: str = "messenger_a") -> str:
        return self.find(rf'class="button main" data-channel="{channel}" href="([^"]+)"')

    def find(self, pattern: str) -> str:
        match = re.search(pattern, self.shown.text)
        assert match, f"{self.shown.status_code} has no {pattern}: {self.shown.text}"
        return unescape(match[1])

    @property
    def heading(self) -> str:
        return self.find(r"<h1>([^<]+)</h1>")


@asynccontextmanager
async def browsing(
    service: Service, *, address: str = "203.0.113.7", lang: str = "en", scheme: str = "http"
) -> AsyncIterator[Browser]:
    """A browser at that address."""
    transport = httpx2.ASGITransport(app=service.app, client=(address, 50000))
    headers = {"Accept-Language": lang, "User-Agent": "Firefox on a test"}
    async with httpx2.AsyncClient(
        transport=transport, base_url=f"{scheme}://msgsvc.test", headers=headers
    ) as http:
        yield Browser(http)
