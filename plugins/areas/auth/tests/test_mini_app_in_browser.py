"""The mini app's page in real Chromium, opened as messengers open it: with signed data in the fragment."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import pytest
import uvicorn
from playwright.async_api import Browser, Page, Route, expect

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.auth.tests.mini_apps import PAYLOAD, MiniApps, mini_apps_of

pytestmark = pytest.mark.browser

PATH = "/login/shop/app"

#: Where pictures are left for whoever asks for them.
SCREENS = Path(__file__).parents[4] / "build" / "screens"

#: How each messenger names the signed data in the fragment.
FRAGMENTS = {"telegram": "tgWebAppData", "max": "WebAppData", "sandbox": "WebAppData"}


@pytest.fixture
def backend(databases: dict[str, Any]) -> Any:
    """One database is enough here: a page does not see which it is."""
    return databases["sqlite"]


@pytest.fixture
async def mini_apps(make_service: ServiceFactory) -> AsyncIterator[MiniApps]:
    async with mini_apps_of(make_service) as mini_apps:
        yield mini_apps


@pytest.fixture
def service(mini_apps: MiniApps) -> Service:
    return mini_apps.service


@pytest.fixture
async def base_url(service: Service, link: dict[str, Any]) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(service.app, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    await serving


@asynccontextmanager
async def window(browser: Browser, **options: Any) -> AsyncIterator[Page]:
    """A phone's window. The site answers; errors and requests to others fail the test."""
    wrong: list[str] = []
    options = {"viewport": {"width": 320, "height": 640}, "locale": "en", **options}
    context = await browser.new_context(**options)

    async def site(route: Route) -> None:
        await route.fulfill(body="the site", content_type="text/plain")

    await context.route("https://shop.example/**", site)
    page = await context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    # What the policy forbids is an error in the console; so is each answer of 400, which is meant.
    page.on("console", lambda line: wrong.append(line.text) if "Policy" in line.text else None)
    page.on("request", lambda asked: wrong.append(asked.url) if _foreign(asked.url) else None)
    yield page
    await context.close()
    assert wrong == []


def _foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "https://shop.example/"))


@pytest.mark.parametrize("messenger", FRAGMENTS)
async def test_yes_leads_to_the_site_with_a_code(
    mini_apps: MiniApps, client: httpx2.AsyncClient, base_url: str, browser: Browser, messenger: str
) -> None:
    signed = quote(await mini_apps.open(messenger), safe="")
    async with window(browser) as page:
        fragment = f"{FRAGMENTS[messenger]}={signed}&tgWebAppVersion=8.0"
        await page.goto(f"{base_url}{PATH}?state=a%26b#{fragment}")
        await expect(page.get_by_role("heading")).to_have_text("Sign in to Shop (shop.example)?")
        await page.get_by_role("button", name="Yes", exact=True).click()
        await page.wait_for_url("https://shop.example/back?**")
        query = parse_qs(urlsplit(page.url).query)
        fragment_at_the_site = urlsplit(page.url).fragment

    assert (query["state"], fragment_at_the_site) == (["a&b"], "")
    verified = await client.post("/v1/auth/verify", json={"code": query["code"][0]})
    assert verified.json()["first_name"] == "Anna"


async def test_cancel_signs_nobody_in_and_says_so(
    mini_apps: MiniApps, client: httpx2.AsyncClient, base_url: str, browser: Browser
) -> None:
    signed = quote(await mini_apps.open("telegram"), safe="")
    async with window(browser, locale="ru") as page:
        await page.goto(f"{base_url}{PATH}#tgWebAppData={signed}")
        await page.get_by_role("button", name="Отмена", exact=True).click()

        await expect(page.get_by_role("status")).to_have_text("Отменено. Вы не вошли в Shop.")
        await expect(page.get_by_role("button")).to_have_count(0)
    found = await client.get("/v1/events", params={"event": "auth.completed"})
    assert found.json()["data"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_both_answers_are_equally_easy_to_reach_on_a_small_screen(
    mini_apps: MiniApps, base_url: str, browser: Browser, scheme: str
) -> None:
    signed = quote(await mini_apps.open("telegram"), safe="")
    async with window(browser, color_scheme=scheme) as page:
        await page.goto(f"{base_url}{PATH}#tgWebAppData={signed}")
        yes = page.get_by_role("button", name="Yes", exact=True)
        cancel = page.get_by_role("button", name="Cancel", exact=True)
        boxes = [await button.bounding_box() for button in (yes, cancel)]
        looks = [
            await button.evaluate(
                "it => { const s = getComputedStyle(it);"
                " return [s.color, s.backgroundColor, s.borderColor, s.fontSize, s.fontWeight]; }"
            )
            for button in (yes, cancel)
        ]
        if os.environ.get("MSGSVC_TEST_SCREENS"):
            await page.screenshot(path=SCREENS / f"mini-app-{scheme}.png")
        width = await page.evaluate("document.documentElement.scrollWidth")
        await page.keyboard.press("Tab")
        await expect(yes).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(cancel).to_be_focused()

    assert width <= 320
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert [boxes[0][side] for side in ("width", "height", "y")] == [
        boxes[1][side] for side in ("width", "height", "y")
    ]
    assert looks[0] == looks[1]


async def test_data_that_is_too_old_asks_to_open_the_page_again(
    mini_apps: MiniApps, base_url: str, browser: Browser
) -> None:
    signed = quote(await mini_apps.open("telegram"), safe="")
    mini_apps.clock.advance(660)
    async with window(browser) as page:
        await page.goto(f"{base_url}{PATH}#tgWebAppData={signed}")
        await page.get_by_role("button", name="Yes", exact=True).click()

        await expect(page.get_by_role("status")).to_contain_text("This page is out of date.")


@pytest.mark.parametrize("javascript", [True, False])
async def test_outside_the_messenger_the_page_leads_to_the_bots(
    mini_apps: MiniApps, base_url: str, browser: Browser, javascript: bool
) -> None:
    async with window(browser, java_script_enabled=javascript) as page:
        await page.goto(base_url + PATH)

        await expect(page.get_by_text("This page works inside the messenger.")).to_be_visible()
        link = page.get_by_role("link", name="Open Telegram")
        await expect(link).to_have_attribute(
            "href", f"https://t.me/{mini_apps.telegram.bot.username}?start={PAYLOAD}"
        )
        await expect(page.get_by_role("button")).to_have_count(0)
