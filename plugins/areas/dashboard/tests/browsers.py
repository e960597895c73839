"""Browsers of people who are not signed in yet, with the forms of the pages that they see."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx2

from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Account, Accounts, PasswordChanges

PASSWORD = "a winter evening by the sea"


class Browser:
    """Keeps cookies, and what was shown last; is not sent on by itself."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.shown: httpx2.Response

    async def open(self, path: str, **options: Any) -> httpx2.Response:
        self.shown = await self.http.get(path, **options)
        return self.shown

    async def submit(self, path: str | None = None, **fields: str) -> httpx2.Response:
        """Posts the form of the page that is shown, or that at `path`, with its hidden fields."""
        page = self.shown
        hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
        data = {**{name: unescape(value) for name, value in hidden}, **fields}
        self.shown = await self.http.post(path or page.url.path, data=data)
        return self.shown

    async def sign_in(self, email: str, password: str = PASSWORD, to: str = "") -> httpx2.Response:
        await self.open("/dashboard/sign-in", params={"next": to} if to else {})
        return await self.submit(email=email, password=password)

    @property
    def to(self) -> str:
        """Where the last answer leads; empty for a page."""
        return str(self.shown.headers.get("location", ""))


@asynccontextmanager
async def browsing(
    service: Service, *, address: str = "203.0.113.7", lang: str = "en", scheme: str = "http"
) -> AsyncIterator[Browser]:
    transport = httpx2.ASGITransport(app=service.app, client=(address, 50000))
    headers = {"Accept-Language": lang, "User-Agent": "Firefox on a test"}
    async with httpx2.AsyncClient(
        transport=transport, base_url=f"{scheme}://msgsvc.test", headers=headers
    ) as http:
        yield Browser(http)


async def new_account(
    service: Service, email: str = "ann@shop.example", *, password: str | None = PASSWORD
) -> Account:
    hashed = await service.get(PasswordChanges).hashed(password, email) if password else None
    async with service.db.transaction() as tx:
        account = await service.get(Accounts).create(tx, email=email, name="Ann Lee")
        if hashed is not None:
            await service.get(PasswordChanges).set_password(tx, account.account_id, hashed)
    return account
