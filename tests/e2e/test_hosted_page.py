"""The hosted sign-in page in real Chromium, from the example site and back to it.

`MSGSVC_TEST_SCREENS=1` leaves pictures of what is seen in build/screens.
"""

import re
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from msgsvc_auth.page_requests import PageRequest
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import digest
from msgsvc_devkit.demo.parts import Parts
from msgsvc_devkit.web_servers import stop
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

#: How a person says yes and no, and what the site answers, by language.
WORDS = {
    "en": ("Yes", "Cancel", "Hello, {name}!", "Sign-in was cancelled", "Try again"),
    "ru": ("Да", "Отмена", "Здравствуйте, {name}!", "Вход отменён", "Попробовать снова"),
}


def run_out(demo: Parts) -> None:
    """Ends the time of all sign-ins that wait."""
    with closing(sqlite3.connect(demo.folder / "demo.db", timeout=30)) as database, database:
        database.execute("UPDATE auth_sessions SET expires_at_ms = 1 WHERE status = 'pending'")


def requested(demo: Parts, lang: str = "en") -> str:
    """A page that a plugin asked for, for the software "Grafana" at the site's address."""
    token, now_ms = PageRequest.new_token(), time.time_ns() // 1_000_000
    with closing(sqlite3.connect(demo.folder / "demo.db", timeout=30)) as database, database:
        [(project_id,)] = database.execute("SELECT project_id FROM core_projects").fetchall()
        row = {
            "project_id": project_id,
            "request_id": new_id("arq"),
            "token_digest": digest(token),
            "source": "oidc",
            "source_id": "1",
            "requester_name": "Grafana",
            "requester_url": demo.site_url,
            "return_url": f"{demo.site_url}/return",
            "state": "of-grafana",
            "lang": lang,
            "number_matching": 0,
            "created_at_ms": now_ms,
            "expires_at_ms": now_ms + 600_000,
        }
        columns, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        database.execute(f"INSERT INTO auth_requests ({columns}) VALUES ({marks})", row)
    return f"{demo.service_url}/login/req_{token}"


def hosted(demo: Parts, state: str = "a-state", lang: str = "en", slug: str = "demo") -> str:
    return f"{demo.service_url}/login/{slug}?state={state}&lang={lang}"


#: Of the four looks, `make test` takes one of each language and each scheme.
in_every_look = pytest.mark.parametrize(
    ("lang", "scheme"),
    [
        ("en", "light"),
        ("ru", "dark"),
        pytest.param("en", "dark", marks=pytest.mark.slow),
        pytest.param("ru", "light", marks=pytest.mark.slow),
    ],
)


async def bot_link(page: Page, channel: str = "messenger_a") -> str:
    link = await page.locator(f"a.button[data-channel={channel}]").get_attribute("href")
    assert link
    return link


async def answer(phone: Page, link: str, name: str, choice: str) -> None:
    """Opens the bot on a phone, and presses a button of its question."""
    await open_on_phone(phone, link, name)
    await phone.get_by_role("button", name=choice, exact=True).click()
    await expect(phone.get_by_role("button", name=choice, exact=True)).to_have_count(0)


async def settled(page: Page, pattern: str) -> None:
    """Waits for an address, wherever redirects lead on the way."""
    await page.wait_for_url(re.compile(pattern))


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_a_person_scans_the_page_and_the_site_greets_them(
    demo: Parts, new_window: NewWindow, tmp_path: Path, lang: str
) -> None:
    yes, _, hello, _, _ = WORDS[lang]
    desktop, phone = await new_window(lang=lang), await new_window(390, 844, lang=lang)
    await desktop.goto(demo.site_url)
    # Where the site's button leads without scripts.
    await desktop.goto(f"{demo.site_url}/login")
    await picture(desktop, f"sign-in-{lang}-desktop-light")
    name = {"en": "Ann", "ru": "Анна"}[lang]

    await open_on_phone(phone, await read_qr(desktop, tmp_path), name)
    button = phone.get_by_role("button", name=yes, exact=True)
    await expect(button).to_be_visible()
    await picture(phone, f"question-{lang}")
    await button.click()

    await expect(desktop.locator("#greeting")).to_have_text(hello.format(name=name))
    await picture(desktop, f"site-signed-in-{lang}")
    # The page has left no trace to go back to: before it there is only the site.
    await desktop.go_back()
    assert desktop.url.startswith(demo.site_url)


async def test_a_plugins_page_leads_back_to_the_plugin_and_the_bot_does_not(
    demo: Parts, new_window: NewWindow, tmp_path: Path
) -> None:
    desktop, phone = await new_window(), await new_window(390, 844)
    await desktop.route(f"{demo.site_url}/**", lambda route: route.fulfill(body="the plugin"))
    await desktop.goto(requested(demo))
    await picture(desktop, "requested-en-desktop")

    await open_on_phone(phone, await read_qr(desktop, tmp_path), "Ilse")
    await phone.get_by_role("button", name="Yes", exact=True).click()
    await settled(desktop, "/return")
    query = parse_qs(urlsplit(desktop.url).query)

    assert query["state"] == ["of-grafana"]
    assert query["code"]
    said = phone.get_by_role("log").get_by_text("Go back to the page where you started.")
    await expect(said).to_be_visible()
    await expect(phone.get_by_role("link", name="Return to the site")).to_have_count(0)


@pytest.mark.parametrize("lang", ["en", pytest.param("ru", marks=pytest.mark.slow)])
async def test_without_scripts_the_page_goes_on_by_itself(
    demo: Parts, new_window: NewWindow, lang: str
) -> None:
    yes, _, hello, _, _ = WORDS[lang]
    window, phone = await new_window(390, 844, lang=lang, scripts=False), await new_window(390, 844)
    await window.goto(f"{demo.site_url}/login")
    link = await bot_link(window, "messenger_b")
    await picture(window, f"sign-in-{lang}-no-scripts")

    await open_on_phone(phone, link, "Boris")
    await phone.get_by_role("button", name=yes, exact=True).click()

    await expect(window.locator("#greeting")).to_have_text(hello.format(name="Boris"))


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("lang", ["en", pytest.param("ru", marks=pytest.mark.slow)])
async def test_cancel_is_told_and_try_again_begins_anew(
    demo: Parts, new_window: NewWindow, lang: str, scripts: bool
) -> None:
    _, cancel, _, cancelled, try_again = WORDS[lang]
    window, phone = await new_window(lang=lang, scripts=scripts), await new_window(390, 844)
    await window.goto(hosted(demo, lang=lang))
    link = await bot_link(window)

    await answer(phone, link, "Cleo", cancel)

    heading = window.get_by_role("heading", level=1)
    await expect(heading).to_have_text(cancelled)
    await window.get_by_role("button", name=try_again).click()
    await expect(heading).to_have_text(re.compile("Pinewood Library"))
    assert await bot_link(window) != link


async def test_back_after_the_sign_in_shows_that_it_is_done(
    demo: Parts, new_window: NewWindow
) -> None:
    window, phone = await new_window(), await new_window(390, 844)
    await window.goto(f"{demo.site_url}/login")
    page = window.url
    await answer(phone, await bot_link(window), "Dora", "Yes")
    await expect(window.locator("#greeting")).to_have_text("Hello, Dora!")

    await window.goto(page)

    await expect(window.get_by_role("heading", level=1)).to_have_text("You are signed in")
    await window.get_by_role("link", name="Continue to").click()
    await expect(window.locator("#greeting")).to_have_text("Hello, Dora!")


async def test_the_phone_itself_can_open_the_bot_by_the_button(
    demo: Parts, new_window: NewWindow
) -> None:
    phone = await new_window(390, 844)
    await phone.goto(f"{demo.site_url}/login")

    async with phone.expect_popup() as opened:
        await phone.get_by_role("link", name="Open Messenger A").click()
    chat = await opened.value
    await someone_new(chat, "Egor")
    await chat.get_by_role("button", name="Yes", exact=True).click()

    await expect(phone.locator("#greeting")).to_have_text("Hello, Egor!")


async def test_everything_works_by_keyboard_alone(demo: Parts, new_window: NewWindow) -> None:
    window, phone = await new_window(), await new_window(390, 844)
    await window.goto(hosted(demo, "keyboard"))
    reached = []
    for _ in range(8):
        await window.keyboard.press("Tab")
        reached.append(
            await window.evaluate(
                "(() => { const at = document.activeElement;"
                " const seen = at.id.startsWith('code-') ? at.nextElementSibling : at;"
                " const outline = getComputedStyle(seen).outlineStyle;"
                " return [seen.textContent.trim().split('(')[0].trim(), outline]; })()"
            )
        )
    await picture(window, "keyboard")

    assert [text for text, _ in reached[:4]] == [
        "Open Messenger A",
        "Open Messenger B",
        "Messenger A",
        "Show it as a link",
    ]
    assert {outline for _, outline in reached[:6]} == {"solid"}
    await window.locator("#code-1").focus()
    await window.keyboard.press("ArrowDown")
    await expect(window.locator(".qr[data-channel=messenger_b]")).to_be_visible()
    await expect(window.locator(".qr[data-channel=messenger_a]")).to_be_hidden()

    await answer(phone, await bot_link(window), "Faina", "Cancel")
    await expect(window.get_by_role("button", name="Try again")).to_be_visible()
    await window.keyboard.press("Tab")
    await window.keyboard.press("Enter")
    await expect(window.get_by_role("link", name="Open Messenger A")).to_be_visible()


async def test_a_screen_reader_hears_where_the_sign_in_stands(
    demo: Parts, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(hosted(demo, "aloud"))

    await expect(window.get_by_role("status")).to_have_text(
        "Waiting for your answer in the messenger…"
    )
    await expect(window.get_by_role("main")).to_have_count(1)
    await expect(window.get_by_role("img", name="QR code that opens the question")).to_have_count(1)
    await expect(window.get_by_role("radio", name="Messenger B")).to_have_count(1)
    await expect(window.get_by_role("navigation", name="Language")).to_be_visible()

    await window.route("**/status?*", lambda route: route.abort())
    await window.reload()
    await expect(window.get_by_role("status")).to_have_text(re.compile("Trying again"))
    await window.unroute("**/status?*")


async def every_page(demo: Parts, window: Page, phone: Page, lang: str) -> AsyncIterator[str]:
    """Opens one page of each kind after the other, and names it."""
    _, cancel, *_ = WORDS[lang]
    await window.goto(hosted(demo, "pages", lang))
    yield "sign-in"
    link = await bot_link(window)
    await answer(phone, link, "Gleb", cancel)
    await settled(window, "resume=1")
    yield "denied"
    await window.context.clear_cookies()
    await window.reload()
    yield "lost"
    await window.goto(requested(demo, lang))
    yield "requested"
    await answer(phone, await bot_link(window), "Jan", cancel)
    await settled(window, "resume=1")
    yield "requested-denied"
    await window.goto(hosted(demo, "done", lang))
    here = window.url
    await window.route(f"{demo.site_url}/**", lambda route: route.fulfill(body="the site"))
    await answer(phone, await bot_link(window), "Hedda", WORDS[lang][0])
    await settled(window, re.escape(demo.site_url))
    await window.goto(here)
    yield "signed-in"
    await window.goto(hosted(demo, "number", lang, "numbers"))
    yield "number"
    run_out(demo)
    await settled(window, "resume=1")
    yield "expired"
    await window.goto(f"{demo.service_url}/login/nobody?lang={lang}")
    yield "not-found"
    await window.goto(f"{demo.service_url}/login/demo?channel=x&lang={lang}")
    yield "wrong-link"


@in_every_look
async def test_every_page_fits_320_pixels_and_has_no_serious_fault(
    demo: Parts, new_window: NewWindow, lang: str, scheme: Scheme
) -> None:
    window = await new_window(320, 640, lang=lang, scheme=scheme, bypass_csp=True)
    phone = await new_window(390, 844)

    async for name in every_page(demo, window, phone, lang):
        await picture(window, f"{name}-{lang}-320-{scheme}")
        assert await window.evaluate("document.documentElement.scrollWidth") <= 320, name
        assert await faults(window) == [], name


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
async def test_every_page_in_a_wide_window_has_no_serious_fault(
    demo: Parts, new_window: NewWindow, scheme: Scheme
) -> None:
    window = await new_window(scheme=scheme, bypass_csp=True)
    phone = await new_window(390, 844)

    async for name in every_page(demo, window, phone, "en"):
        await picture(window, f"{name}-en-desktop-{scheme}")
        assert await faults(window) == [], name


BUTTON = """<!doctype html><html lang="{lang}"><title>Shop</title><main><h1>Shop</h1>
<script src="{service}/login/button.js" data-slug="demo" data-state="of-this-browser" async></script>
</main>"""


@asynccontextmanager
async def shop(demo: Parts, lang: str) -> AsyncIterator[str]:
    """A site of another origin, whose policy allows nothing but that one script; its address."""

    async def front_page(_request: web.Request) -> web.Response:
        policy = f"default-src 'none'; script-src {demo.service_url}"
        return web.Response(
            text=BUTTON.format(service=demo.service_url, lang=lang),
            content_type="text/html",
            headers={"Content-Security-Policy": policy},
        )

    app = web.Application()
    app.add_routes([web.get("/", front_page)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await stop(runner)


@in_every_look
async def test_a_sites_own_page_gets_a_button_by_one_line(
    demo: Parts, new_window: NewWindow, lang: str, scheme: Scheme
) -> None:
    window = await new_window(lang=lang, scheme=scheme)
    text = {"en": "Sign in through a messenger", "ru": "Войти через мессенджер"}[lang]
    async with shop(demo, lang) as address:
        await window.goto(address)
        button = window.get_by_role("link", name=text)
        await expect(button).to_be_visible()
        ground = await button.evaluate("link => getComputedStyle(link).backgroundColor")
        await picture(window, f"button-{lang}-{scheme}")
        await window.keyboard.press("Tab")
        await window.keyboard.press("Enter")
        await settled(window, "/login/demo")

    assert ground == {"light": "rgb(31, 122, 102)", "dark": "rgb(86, 195, 164)"}[scheme]
    assert parse_qs(urlsplit(window.url).query) == {"state": ["of-this-browser"], "lang": [lang]}
    await expect(window.locator("#sign-in")).to_be_visible()
