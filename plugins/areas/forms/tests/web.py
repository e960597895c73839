"""Browsers and programs that send forms in."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx2

from msgsvc_core.service import Service

#: What browsers ask for when a person goes to a page.
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0" + b"\0" * 64


class Visitor:
    """Somebody at an address of their own, without an API key."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        #: What was shown last.
        self.shown: httpx2.Response

    async def open(self, form: dict[str, Any], lang: str = "en") -> httpx2.Response:
        self.shown = await self.http.get(f"/f/{form['form_id']}?lang={lang}")
        return self.shown

    async def send(self, form: dict[str, Any], files: Any = None, **values: Any) -> httpx2.Response:
        """Sends the page that is shown, as a browser does it."""
        data = {"_token": self.token, "_lang": "en", **values}
        self.shown = await self.http.post(f"/f/{form['form_id']}", data=data, files=files)
        return self.shown

    async def send_to(self, form: dict[str, Any], **values: Any) -> httpx2.Response:
        """Sends as a browser does it, whatever is shown."""
        return await self.http.post(f"/f/{form['form_id']}", data=values)

    async def post(self, form: dict[str, Any], **options: Any) -> httpx2.Response:
        """Sends whatever is given, as a program."""
        headers = {"Accept": "*/*", **options.pop("headers", {})}
        return await self.http.post(f"/f/{form['form_id']}", headers=headers, **options)

    @property
    def token(self) -> str:
        match = re.search(r'name="_token" value="([^"]+)"', self.shown.text)
        assert match, self.shown.text
        return unescape(match[1])


@asynccontextmanager
async def visiting(service: Service, address: str = "203.0.113.7") -> AsyncIterator[Visitor]:
    """A visitor at that address."""
    transport = httpx2.ASGITransport(app=service.app, client=(address, 50000))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://msgsvc.test", headers={"Accept": HTML}
    ) as http:
        yield Visitor(http)
