"""The page for the code of a device in real Chromium, from the code to "go back to your device"."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.async_api import Browser, Page, expect

from msgsvc_core.service import Service
from msgsvc_oidc import plugin
from plugins.areas.oidc.tests.conftest import Visitor
from plugins.areas.oidc.tests.devices import DEVICE_CLIENT, poll, start
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns

pytestmark = pytest.mark.browser


#: Where pictures are left for whoever asks for them.
SCREENS = Path(__file__).parents[4] / "build" / "screens"

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 640}}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}


@pytest.fixture
def backend(databases: dict[str, Any]) -> Any:
    """One database is enough here: a page does not see which it is."""
    return databases["sqlite"]


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.fixture
async def service(
    make_service: Callable[..., Awaitable[Service]],
    sign_ins: ScriptedSignIns,
    oidc_settings: dict[str, Any],
    listener: socket.socket,
) -> Service:
    sign_ins.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    plugins = [("signing", sign_ins), ("oidc", plugin)]
    return await make_service(extra_plugins=plugins, oidc=oidc_settings, base_url=sign_ins.base_url)


@pytest.fixture
async def base_url(
    service: Service, sign_ins: ScriptedSignIns, listener: socket.socket
) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield sign_ins.base_url
    server.should_exit = True
    await serving


@pytest.fixture
async def tv(register) -> dict[str, Any]:
    return await register(**DEVICE_CLIENT)


@asynccontextmanager
async def window(browser: Browser, **options: Any) -> AsyncIterator[Page]:
    """A window in which errors of the page fail the test."""
    wrong: list[str] = []
    context = await browser.new_context(**{"locale": "en", **options})
    page = await context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Security" in said.text else None)
    yield page
    await context.close()
    assert wrong == []


async def photograph(page: Page, name: str) -> None:
    """Nothing is wider than the window; a picture, if `MSGSVC_SCREENS` is set."""
    wider = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    if "MSGSVC_SCREENS" in os.environ:
        SCREENS.mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=SCREENS / f"oidc-{name}.png", full_page=True)
    assert not wider, name


async def sign_in(page: Page, person: Visitor, base_url: str) -> None:
    """The person says Yes to the number, and the browser returns from the sign-in page."""
    await page.wait_for_url(f"{base_url}/login/*")
    started = person.sign_ins.latest
    code = person.sign_ins.confirm(started.session_id, person.subscriber, "number")
    await page.goto(f"{base_url}{person.issuer}/return?code={code}&state={started.request.state}")


async def test_a_code_is_typed_by_keyboard_alone(browser, base_url, ann: Visitor, tv):
    codes = await start(ann, tv, scope="openid profile notify")

    async with window(browser, **PHONE) as page:
        await page.goto(codes["verification_uri"])
        field = page.get_by_label("Code")
        await expect(field).to_be_focused()
        await photograph(page, "device-enter")
        await page.keyboard.type("bcdfghj")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("eight letters")
        await expect(field).to_be_focused()
        await photograph(page, "device-malformed")
        await page.keyboard.press("Control+a")
        await page.keyboard.type(codes["user_code"].lower())
        await page.keyboard.press("Enter")
        await sign_in(page, ann, base_url)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Allow TV?")
        await photograph(page, "device-consent")
        # A second press changes nothing.
        await page.get_by_role("button", name="Allow").dblclick()
        await expect(page.get_by_role("status")).to_contain_text("Go back to your device")
        await photograph(page, "device-connected")

    assert (await poll(ann, tv, codes["device_code"])).status_code == 200


async def test_the_field_leaves_the_code_as_it_is_typed(browser, base_url, ann: Visitor):
    async with window(browser, **PHONE) as page:
        await page.goto(f"{base_url}{ann.issuer}/device")
        field = page.get_by_label("Code")

        await expect(field).to_have_attribute("autocapitalize", "characters")
        for name in ("autocomplete", "autocorrect"):
            await expect(field).to_have_attribute(name, "off")
        await expect(field).to_have_attribute("spellcheck", "false")


@pytest.mark.parametrize("lang", ["en", "ru"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_pages_fit_in_each_language_and_scheme(
    browser, base_url, ann: Visitor, tv, lang: str, scheme: Any
):
    codes = await start(ann, tv, scope="openid profile notify")
    look: dict[str, Any] = {"locale": lang, "color_scheme": scheme}

    async with window(browser, **PHONE, **look) as page:
        await page.goto(codes["verification_uri_complete"])
        await expect(page.get_by_text(codes["user_code"])).to_be_visible()
        await photograph(page, f"device-confirm-{lang}-{scheme}")
        await page.get_by_role(
            "link", name={"en": "It shows another code", "ru": "Там другой код"}[lang]
        ).click()
        await page.locator("#user_code").fill("BCDF-GHJK")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        await photograph(page, f"device-unknown-{lang}-{scheme}")

    async with window(browser, **DESKTOP, **look) as page:
        await page.goto(codes["verification_uri_complete"])
        await photograph(page, f"device-confirm-wide-{lang}-{scheme}")
        await page.get_by_role("button").click()
        await sign_in(page, ann, base_url)
        await photograph(page, f"device-consent-wide-{lang}-{scheme}")
        await page.get_by_role("button", name={"en": "Cancel", "ru": "Отмена"}[lang]).click()
        await expect(page.get_by_role("status")).to_be_visible()
        await photograph(page, f"device-refused-wide-{lang}-{scheme}")

    assert (await poll(ann, tv, codes["device_code"])).json()["error"] == "access_denied"
