"""A page of another site in real Chromium: it can neither show the consent page in a frame nor answer it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import uvicorn
from playwright.async_api import BrowserContext, Page, async_playwright, expect

from msgsvc_devkit.machine import chromium
from msgsvc_oidc import plugin

pytestmark = pytest.mark.browser

#: Of another site: no cookie of `127.0.0.1` that is `lax` goes with its forms.
EVIL = "http://localhost:8999/"


@pytest.fixture
def backend(databases: dict[str, Any]) -> Any:
    """One database is enough here: a page does not see which it is."""
    return databases["sqlite"]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


@pytest.fixture
async def service(
    make_service: Any, sign_ins: Any, oidc_settings: dict[str, Any], listener: socket.socket
) -> Any:
    return await make_service(
        extra_plugins=[("signing", sign_ins), ("oidc", plugin)],
        oidc=oidc_settings,
        base_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
    )


@pytest.fixture
async def browser(service: Any, listener: socket.socket) -> AsyncIterator[BrowserContext]:
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    # Chromium blocks frames from a loopback address before it sees their headers.
    flags += ["--disable-features=LocalNetworkAccessChecks"]
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium(), args=flags)
        yield await launched.new_context(locale="en", base_url=service.settings.base_url)
        await launched.close()
    server.should_exit = True
    await serving


async def consent_page(ann: Any, client: dict[str, Any], browser: BrowserContext) -> Page:
    """The question to Ann, in her browser."""
    page = await browser.new_page()

    query = (await ann.authorize(client)).request.url.query.decode()
    # It leads to the page of another plugin, which is not played here.
    await browser.request.get(f"{ann.issuer}/authorize?{query}", max_redirects=0)
    started = ann.sign_ins.latest
    code = ann.sign_ins.confirm(started.session_id, ann.subscriber, "button")
    await page.goto(f"{ann.issuer}/return?code={code}&state={started.request.state}")
    await expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()
    return page


async def evil_page(browser: BrowserContext, body: str) -> Page:
    page = await browser.new_page()

    async def evil(route: Any) -> None:
        await route.fulfill(body=body, content_type="text/html")

    await browser.route(f"{EVIL}**", evil)
    await page.goto(EVIL)
    return page


async def test_the_consent_page_is_blocked_in_a_frame(ann, register, browser):
    shown = await consent_page(ann, await register(), browser)
    async with browser.expect_event("requestfailed") as failed:
        evil = await evil_page(browser, f"<iframe src='{shown.url}'></iframe>")
    request = await failed.value
    frame = evil.frame_locator("iframe")

    assert (request.url, request.failure) == (shown.url, "net::ERR_BLOCKED_BY_RESPONSE")
    await expect(frame.get_by_role("button", name="Allow", exact=True)).to_have_count(0)


async def test_a_form_of_another_site_is_no_consent(ann, register, browser):
    shown = await consent_page(ann, await register(), browser)
    evil = await evil_page(
        browser,
        f"<form method=post action='{shown.url}'><input name=answer value=allow></form>"
        "<script>document.forms[0].submit()</script>",
    )

    await expect(evil.get_by_role("heading")).to_have_text("This sign-in can't go on")
    # The person's own page still works.
    await shown.reload()
    await expect(shown.get_by_role("button", name="Allow", exact=True)).to_be_visible()
