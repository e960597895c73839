"""A person signs in to the example site with a phone, seen through a real browser.

The QR code is read from a picture of the screen, as a camera would.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from msgsvc_core.cli.demo.command import SITE
from msgsvc_core.cli.demo.parts import Parts, running_parts
from msgsvc_core.testing.fixtures import chromium

pytestmark = pytest.mark.browser

#: Without these Chromium calls its maker, which a closed network refuses again and again.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

NewWindow = Callable[..., Awaitable[Page]]


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Parts]:
    """The service, two sandbox messengers and the example site."""
    async with running_parts(tmp_path, SITE, 0, 0) as parts:
        yield parts


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield launched
        await launched.close()


@pytest.fixture
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    """Windows of people who share nothing; any error on a page fails the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    async def open_window(width: int, height: int, lang: str = "en") -> Page:
        context = await browser.new_context(
            viewport={"width": width, "height": height}, locale=lang, device_scale_factor=2
        )
        contexts.append(context)
        page = await context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield open_window
    for context in contexts:
        await context.close()
    assert not errors


async def read_qr(page: Page, folder: Path) -> str:
    """The link in the QR code that the screen shows."""
    picture = folder / "screen.png"
    await page.screenshot(path=picture)
    process = await asyncio.create_subprocess_exec(
        "zbarimg", "--quiet", "--raw", str(picture), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.decode().strip()


async def open_on_phone(phone: Page, link: str, name: str) -> None:
    """Opens a bot's link on a phone whose owner is new to the messenger."""
    await phone.goto(link)
    form = phone.locator(".someone-new form")
    await form.locator("input[name=name]").fill(name)
    await form.locator("button[type=submit]").click()


async def test_a_person_scans_the_code_presses_yes_and_is_greeted_by_name(
    demo: Parts, new_window: NewWindow, tmp_path: Path
) -> None:
    desktop = await new_window(1280, 900)
    await desktop.goto(demo.site_url)
    await desktop.locator("#start-qr").click()
    await expect(desktop.locator("img.qr:visible")).to_have_count(1)
    phone = await new_window(390, 844)

    await open_on_phone(phone, await read_qr(desktop, tmp_path), "Ann")
    await phone.get_by_role("button", name="Yes", exact=True).click()

    await expect(desktop.locator("#greeting")).to_have_text("Hello, Ann!", timeout=15_000)
    await expect(phone.get_by_role("button", name="Yes", exact=True)).to_have_count(0)


async def test_a_person_who_presses_cancel_is_told_so_on_the_site(
    demo: Parts, new_window: NewWindow, tmp_path: Path
) -> None:
    desktop = await new_window(1280, 900)
    await desktop.goto(demo.site_url)
    await desktop.locator("#start-qr").click()
    await expect(desktop.locator("img.qr:visible")).to_have_count(1)
    phone = await new_window(390, 844)

    await open_on_phone(phone, await read_qr(desktop, tmp_path), "Boris")
    await phone.get_by_role("button", name="Cancel", exact=True).click()

    told = desktop.locator("#qr-status[data-status=denied]")
    await expect(told).to_have_text(re.compile("cancelled"), timeout=15_000)
    await expect(desktop.locator("#greeting")).to_have_count(0)


async def test_the_signed_in_person_gets_a_notification_in_the_messenger(
    demo: Parts, new_window: NewWindow
) -> None:
    desktop = await new_window(1280, 900)
    await desktop.goto(demo.site_url)
    link = await desktop.locator("#static-links a[data-channel=messenger_a]").get_attribute("href")
    assert link
    await open_on_phone(desktop, link, "Cleo")
    await desktop.get_by_role("button", name="Yes", exact=True).click()
    back = desktop.locator(f"a[href^='{demo.site_url}/callback']")
    await desktop.goto(str(await back.get_attribute("href")))
    await expect(desktop.locator("#greeting")).to_have_text("Hello, Cleo!")

    await desktop.locator("#notify").click()

    await expect(desktop.locator("#notice")).to_contain_text("msg_")
    await desktop.goto(link)
    await desktop.get_by_role("button", name="Open as Cleo").click()
    await expect(desktop.locator("#messages")).to_contain_text("Pinewood Library")
