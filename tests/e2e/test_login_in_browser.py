"""A person signs in to the example site with a phone, seen through a real browser.

By the site's button, with scripts, and by the service's own page, where it leads without. The QR
code is read from a picture of the screen, as a camera would.
"""

import re
from pathlib import Path

import aiohttp
import pytest
from playwright.async_api import Page, expect

from msgsvc_devkit.demo.parts import SLUG, Parts
from tests.e2e.windows import (
    NewWindow,
    Scheme,
    faults,
    open_on_phone,
    picture,
    read_qr,
    someone_new,
)

pytestmark = pytest.mark.browser

#: Yes, Cancel, the site's greeting, and what its button says of a Cancel, by language.
WORDS = {
    "en": ("Yes", "Cancel", "Hello, {name}!", "was cancelled"),
    "ru": ("Да", "Отмена", "Здравствуйте, {name}!", "отменён"),
}


async def begin(window: Page, demo: Parts) -> str:
    """Presses the button; returns the number that it shows."""
    await window.goto(demo.site_url)
    await window.locator("#sign-in").click()
    number = window.locator("[part=number]")
    await expect(number).to_be_visible()
    return await number.inner_text()


async def link_to(window: Page, channel: str) -> str:
    link = window.locator(f"a[data-channel={channel}]").first
    return str(await link.get_attribute("href"))


async def choose(phone: Page, choice: str) -> None:
    await phone.get_by_role("button", name=choice, exact=True).click()


async def way_back(demo: Parts, phone: Page) -> str:
    """Where the button leads that the bot shows after a Yes."""
    link = phone.locator(f"a[href^='{demo.site_url}/callback']").last
    return str(await link.get_attribute("href"))


async def static_link(demo: Parts) -> str:
    """The permanent link that a poster would show."""
    headers = {"Authorization": f"Bearer {demo.api_key}"}
    async with (
        aiohttp.ClientSession(demo.service_url, headers=headers) as api,
        api.get(f"/v1/auth/links/{SLUG}") as answer,
    ):
        return str((await answer.json())["links"]["messenger_a"])


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_person_scans_the_code_chooses_the_number_and_is_greeted_by_name(
    demo: Parts, new_window: NewWindow, tmp_path: Path, lang: str
) -> None:
    desktop, phone = await new_window(lang=lang), await new_window(390, 844, lang=lang)
    number = await begin(desktop, demo)
    await picture(desktop, f"site-button-{lang}")

    await open_on_phone(phone, await read_qr(desktop, tmp_path), "Ann")
    await choose(phone, number)

    greeting = desktop.locator("#greeting")
    await expect(greeting).to_have_text(WORDS[lang][2].format(name="Ann"))
    await picture(desktop, f"site-signed-in-{lang}")


async def test_only_the_browser_that_began_is_signed_in(demo: Parts, new_window: NewWindow) -> None:
    desktop, stranger = await new_window(), await new_window()
    phone = await new_window(390, 844)
    number = await begin(desktop, demo)

    await open_on_phone(phone, await link_to(desktop, "messenger_b"), "Boris")
    await choose(phone, number)
    await expect(desktop.locator("#greeting")).to_have_text("Hello, Boris!")
    await stranger.goto(f"{demo.site_url}/signin/ses_of_somebody_else/finish")

    await expect(stranger.locator("#problem")).to_be_visible()


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_person_who_presses_cancel_is_told_so_on_the_site(
    demo: Parts, new_window: NewWindow, lang: str
) -> None:
    _, cancel, _, cancelled = WORDS[lang]
    desktop, phone = await new_window(lang=lang), await new_window(390, 844, lang=lang)
    await begin(desktop, demo)

    await open_on_phone(phone, await link_to(desktop, "messenger_a"), "Dora")
    await choose(phone, cancel)

    await expect(desktop.locator("[part=status]")).to_have_text(re.compile(cancelled))
    await expect(desktop.locator("[part=again]")).to_be_visible()
    await picture(desktop, f"site-cancelled-{lang}")


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_without_scripts_the_button_leads_to_the_services_page_and_back(
    demo: Parts, new_window: NewWindow, lang: str
) -> None:
    yes, _, hello, _ = WORDS[lang]
    desktop, phone = await new_window(lang=lang, scripts=False), await new_window(390, 844)
    await desktop.goto(demo.site_url)
    await desktop.locator("#sign-in").click()
    link = await link_to(desktop, "messenger_a")

    await open_on_phone(phone, link, "Zoe")
    await choose(phone, yes if lang == "ru" else "Yes")
    # The page looks by itself every five seconds.
    await desktop.reload()

    await expect(desktop.locator("#greeting")).to_have_text(hello.format(name="Zoe"))


async def test_a_static_link_leads_to_the_bot_and_back(demo: Parts, new_window: NewWindow) -> None:
    desktop, phone = await new_window(), await new_window(390, 844)

    await open_on_phone(phone, await static_link(demo), "Cleo")
    await choose(phone, "Yes")
    await desktop.goto(await way_back(demo, phone))

    await expect(desktop.locator("#greeting")).to_have_text("Hello, Cleo!")


async def test_the_signed_in_person_gets_a_notification_in_the_messenger(
    demo: Parts, new_window: NewWindow
) -> None:
    desktop = await new_window()
    link = await static_link(demo)
    await desktop.goto(link)
    await someone_new(desktop, "Hedda")
    await choose(desktop, "Yes")
    await desktop.goto(await way_back(demo, desktop))
    await expect(desktop.locator("#greeting")).to_have_text("Hello, Hedda!")

    await desktop.locator("#notify").click()

    await expect(desktop.locator("#notice")).to_contain_text("msg_")
    await desktop.goto(link)
    await desktop.get_by_role("button", name="Open as Hedda").click()
    await expect(desktop.locator("#messages")).to_contain_text("Pinewood Library")


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1280, "light")])
async def test_the_pages_have_no_serious_fault_of_accessibility(
    demo: Parts, new_window: NewWindow, width: int, scheme: Scheme
) -> None:
    window = await new_window(width, 800, scheme=scheme, bypass_csp=True)
    await window.goto(demo.site_url)
    await picture(window, f"site-{width}-{scheme}")
    signed_out = await faults(window)
    await begin(window, demo)
    await picture(window, f"site-panel-{width}-{scheme}")
    panel = await faults(window)
    await window.goto(f"{demo.site_url}/events")
    await picture(window, f"site-events-{width}-{scheme}")
    received = await faults(window)

    assert (signed_out, panel, received) == ([], [], [])
