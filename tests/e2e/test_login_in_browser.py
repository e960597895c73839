"""A person signs in to the example site with a phone, seen through a real browser.

All three ways that a site has on pages of its own, in both languages. The QR code is read from a
picture of the screen, as a camera would.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from msgsvc_devkit.demo.command import SITE
from msgsvc_devkit.demo.parts import Parts, running_parts
from tests.e2e.windows import (
    NewWindow,
    open_on_phone,
    picture,
    read_qr,
    someone_new,
)

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

#: Yes, Cancel, the site's greeting, and what it says of a Cancel, by language.
WORDS = {
    "en": ("Yes", "Cancel", "Hello, {name}!", "cancelled"),
    "ru": ("Да", "Отмена", "Здравствуйте, {name}!", "отменён"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Parts]:
    """The service, two sandbox messengers and the example site."""
    async with running_parts(tmp_path_factory.mktemp("demo"), SITE, 0, 0) as parts:
        yield parts


async def way_back(demo: Parts, phone: Page, yes: str) -> str:
    """Presses Yes; returns where the bot's button then leads."""
    await phone.get_by_role("button", name=yes, exact=True).click()
    link = phone.locator(f"a[href^='{demo.site_url}/callback']").last
    return str(await link.get_attribute("href"))


async def begin(window: Page, kind: str) -> None:
    """Presses the button of a session with state (`session`) or of the QR code (`qr`)."""
    await window.locator(f"#start-{kind}").click()
    await expect(window.locator(f"#{kind}-panel")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_static_link_leads_to_the_bot_and_back(
    demo: Parts, new_window: NewWindow, lang: str, scripts: bool
) -> None:
    yes, _, hello, _ = WORDS[lang]
    desktop = await new_window(lang=lang, scripts=scripts)
    phone = await new_window(390, 844, lang=lang)
    await desktop.goto(demo.site_url)
    link = desktop.locator("#static-links a[data-channel=messenger_a]")

    await open_on_phone(phone, str(await link.get_attribute("href")), "Cleo")
    await desktop.goto(await way_back(demo, phone, yes))

    await expect(desktop.locator("#greeting")).to_have_text(hello.format(name="Cleo"))
    await picture(phone, f"static-link-confirmed-{lang}")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_session_comes_back_to_the_browser_that_began(
    demo: Parts, new_window: NewWindow, lang: str, scripts: bool
) -> None:
    yes, _, hello, _ = WORDS[lang]
    desktop = await new_window(lang=lang, scripts=scripts)
    phone, stranger = await new_window(390, 844, lang=lang), await new_window(lang=lang)
    await desktop.goto(demo.site_url)
    await begin(desktop, "session")
    await picture(desktop, f"session-{lang}")
    link = desktop.locator("#session-links a[data-channel=messenger_b]")

    await open_on_phone(phone, str(await link.get_attribute("href")), "Boris")
    back = await way_back(demo, phone, yes)
    await stranger.goto(back)
    await expect(stranger.locator("#greeting")).to_have_count(0)
    await desktop.goto(back)

    await expect(desktop.locator("#greeting")).to_have_text(hello.format(name="Boris"))


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_person_scans_the_code_presses_yes_and_is_greeted_by_name(
    demo: Parts, new_window: NewWindow, tmp_path: Path, lang: str
) -> None:
    yes, _, hello, _ = WORDS[lang]
    desktop, phone = await new_window(lang=lang), await new_window(390, 844, lang=lang)
    await desktop.goto(demo.site_url)
    await begin(desktop, "qr")
    await desktop.locator("#qr-panel").scroll_into_view_if_needed()
    await expect(desktop.locator("img.qr:visible")).to_have_count(1)
    await picture(desktop, f"qr-{lang}")

    await open_on_phone(phone, await read_qr(desktop, tmp_path), "Ann")
    await phone.get_by_role("button", name=yes, exact=True).click()

    await expect(desktop.locator("#greeting")).to_have_text(hello.format(name="Ann"))
    await expect(phone.get_by_role("button", name=yes, exact=True)).to_have_count(0)


@pytest.mark.parametrize("kind", ["session", "qr"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_person_who_presses_cancel_is_told_so_on_the_site(
    demo: Parts, new_window: NewWindow, lang: str, kind: str
) -> None:
    _, cancel, _, cancelled = WORDS[lang]
    desktop, phone = await new_window(lang=lang), await new_window(390, 844, lang=lang)
    await desktop.goto(demo.site_url)
    await begin(desktop, kind)
    link = desktop.locator(f"#{kind}-panel a[data-channel=messenger_a]")

    await open_on_phone(phone, str(await link.get_attribute("href")), "Dora")
    await phone.get_by_role("button", name=cancel, exact=True).click()

    told = desktop.locator(f"#{kind}-status[data-status=denied]")
    await expect(told).to_have_text(re.compile(cancelled))
    await expect(desktop.locator("#greeting")).to_have_count(0)
    await picture(desktop, f"{kind}-cancelled-{lang}")


async def test_the_signed_in_person_gets_a_notification_in_the_messenger(
    demo: Parts, new_window: NewWindow
) -> None:
    desktop = await new_window()
    await desktop.goto(demo.site_url)
    link = await desktop.locator("#static-links a[data-channel=messenger_a]").get_attribute("href")
    assert link
    await desktop.goto(link)
    await someone_new(desktop, "Hedda")
    await desktop.goto(await way_back(demo, desktop, "Yes"))
    await expect(desktop.locator("#greeting")).to_have_text("Hello, Hedda!")

    await desktop.locator("#notify").click()

    await expect(desktop.locator("#notice")).to_contain_text("msg_")
    await desktop.goto(link)
    await desktop.get_by_role("button", name="Open as Hedda").click()
    await expect(desktop.locator("#messages")).to_contain_text("Pinewood Library")
