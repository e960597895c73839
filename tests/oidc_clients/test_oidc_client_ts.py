"""npm `oidc-client-ts` in Chromium: an application without a back end, on an origin of its own."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from playwright.async_api import Browser, Page, Route, expect

from msgsvc_devkit.web_servers import stop
from tests.e2e.windows import NewWindow, windows
from tests.oidc_clients.browsing import is_at
from tests.oidc_clients.programs import HERE, missing
from tests.oidc_clients.provider import ClientSpec, Provider
from tests.ports import free_ports

PAGE = HERE / "oidc_client_ts.html"
LIBRARY = HERE / "node_modules" / "oidc-client-ts" / "dist" / "browser" / "oidc-client-ts.min.js"

pytestmark = pytest.mark.browser


@dataclass(frozen=True, slots=True)
class Application:
    """The application in a window of a person."""

    url: str
    page: Page
    provider: Provider

    async def sign_in(self) -> str:
        """The person signs in; the `sub` that the application then knows."""
        await self.page.goto(self.url)
        await expect(self.page.locator("output")).to_have_text("nobody")
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url(lambda url: is_at(url, self.provider.issuer))
        await self.provider.sign_in_page(self.page)
        await self.page.wait_for_url(f"{self.url}/callback**")
        await expect(self.page.locator("output")).not_to_be_empty()
        return await self.page.locator("output").inner_text()

    async def user(self) -> dict[str, Any]:
        """What the library keeps of the person."""
        found: dict[str, Any] = await self.page.evaluate("manager.getUser()")
        return found

    async def renew(self, **options: Any) -> dict[str, Any]:
        """The person as the library knows them after a silent renewal."""
        renewed: dict[str, Any] = await self.page.evaluate(
            "options => manager.signinSilent(options)", options
        )
        return renewed


@pytest.fixture
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


@asynccontextmanager
async def serving(provider: Provider, scope: str) -> AsyncIterator[str]:
    """The application, registered as a public client; its origin."""
    if not LIBRARY.exists():
        missing("npm's oidc-client-ts")
    port = free_ports()
    url = f"http://127.0.0.1:{port}"
    client = await provider.register(
        ClientSpec(
            name="An application",
            redirect_uris=[f"{url}/callback", f"{url}/silent"],
            post_logout_redirect_uris=[f"{url}/bye"],
            auth_method="none",
        )
    )
    settings = {"authority": provider.issuer, "client_id": client.client_id, "scope": scope}
    # Offline access is only given after consent (OpenID Connect Core 1.0, section 11).
    sign_in = {"prompt": "consent"} if "offline_access" in scope else {}
    text = PAGE.read_text().replace("...SETTINGS", f"...{json.dumps(settings)}")
    text = text.replace("SIGN_IN", json.dumps(sign_in).replace('"', "'"))

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html")

    async def library(_: web.Request) -> web.FileResponse:
        return web.FileResponse(LIBRARY)

    app = web.Application()
    app.router.add_get("/oidc-client-ts.js", library)
    app.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield url
    finally:
        await stop(runner)


async def open_application(provider: Provider, url: str, new_window: NewWindow) -> Application:
    page = await new_window()
    await page.context.route(lambda asked: urlsplit(asked).hostname != "127.0.0.1", _refuse)
    return Application(url, page, provider)


async def _refuse(route: Route) -> None:
    # Pages of a provider may ask for fonts of elsewhere.
    await route.abort()


async def test_a_person_signs_in_and_out(provider: Provider, new_window: NewWindow) -> None:
    async with serving(provider, "openid profile") as url:
        application = await open_application(provider, url, new_window)
        sub = await application.sign_in()
        user = await application.user()
        await application.page.get_by_role("button", name="Sign out").click()
        await application.provider.log_out_page(application.page)
        await application.page.wait_for_url(f"{url}/bye**")
        await application.page.goto(url)
        await expect(application.page.locator("output")).to_have_text("nobody")

    assert user["profile"]["sub"] == sub
    assert user["profile"]["name"]


async def test_tokens_are_renewed_by_the_refresh_token(
    provider: Provider, new_window: NewWindow
) -> None:
    async with serving(provider, "openid profile offline_access") as url:
        application = await open_application(provider, url, new_window)
        await application.sign_in()
        before = await application.user()
        after = await application.renew()
        await application.page.evaluate("manager.revokeTokens()")
        revoked = await application.user()

    for token in ("access_token", "refresh_token"):
        assert before[token] != after[token]
    assert after["expires_at"] >= before["expires_at"]
    assert after["profile"]["sub"] == before["profile"]["sub"]
    assert not revoked.get("refresh_token")


async def test_tokens_are_renewed_in_a_frame_without_a_word(
    provider: Provider, new_window: NewWindow
) -> None:
    async with serving(provider, "openid profile") as url:
        application = await open_application(provider, url, new_window)
        sub = await application.sign_in()
        before = await application.user()
        after = await application.renew()

    assert before.get("refresh_token") is None
    assert before["access_token"] != after["access_token"]
    assert after["profile"]["sub"] == sub


async def test_a_renewal_without_a_session_says_that_a_sign_in_is_needed(
    provider: Provider, new_window: NewWindow
) -> None:
    async with serving(provider, "openid profile") as url:
        application = await open_application(provider, url, new_window)
        await application.sign_in()
        await application.page.context.clear_cookies()
        failed = await application.page.evaluate(
            "manager.signinSilent().then(() => null, error => error.error)"
        )

    assert failed == "login_required"
