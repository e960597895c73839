"""A walk over the site in a browser: people find, read and see it, without a network."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, Response, expect

from msgsvc_devkit import until
from tests.e2e.windows import NewWindow, Scheme, faults, picture, windows
from tests.site.tools import Quiet

pytestmark = pytest.mark.browser

#: A page of each kind.
KINDS = (
    "index",
    "tutorial",
    "ru/index",
    "ru/tutorial",
    "guides/messages",
    "install",
    "run",
    "troubleshoot",
    "concepts",
    "api/index",
    "api/otp",
    "api/webhook-events",
    "reference/errors",
    "reference/settings",
    "decisions/index",
    "decisions/0097-openapi-document",
    "plugins/channels/telegram",
    "source/msgsvc_core/plugins/sign_ins.py",
    "CHANGELOG",
)

#: What people search for, and a page that has to be among the first found.
WORDS = {
    "broadcast": "guides/broadcasts",
    "Idempotency-Key": "api/index",
    "webhooks": "guides/receive-webhooks",
    "OpenID": "guides/openid-connect",
    "backup": "run",
    "PostgreSQL": "install",
    "rate limit": "api/index",
    "drip campaign": "guides/drip",
    "helpdesk": "guides/helpdesk",
    "rotate": "run",
}


#: How many results are looked at.
RESULTS = 10


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """That of the checkout's pages, on a server that has the list of versions beside them."""
    with Quiet.serving(site.parent) as url:
        yield f"{url}/{site.name}"


@pytest.fixture
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


def places_of(site: Path) -> list[str]:
    pages = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    return [path.relative_to(site).as_posix() for path in pages]


def asked_elsewhere(window: Page, address: str) -> list[str]:
    """Fills with what the page asks of others than the site, of which the address is a version's."""
    ours = address.rpartition("/")[0]
    asked: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((ours, "data:", "blob:")):
            asked.append(request.url)

    window.on("request", note)
    return asked


async def search(window: Page, text: str, page: str, *, box: str = "Search") -> None:
    """Returns once the page is among the first results."""
    await window.get_by_role("combobox", name=box).fill(text)

    async def found() -> bool:
        results = window.get_by_role("option")
        links: list[str] = await results.evaluate_all("links => links.map(link => link.href)")
        return any(f"/{page}.html" in link for link in links[:RESULTS])

    assert await until(found), (text, page)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_and_nothing_comes_from_elsewhere(
    address: str, new_window: NewWindow, scheme: Scheme, width: int
) -> None:
    window = await new_window(width=width, scheme=scheme)
    asked = asked_elsewhere(window, address)
    found, too_wide = {}, {}
    for page in KINDS:
        await window.goto(f"{address}/{page}.html")
        await picture(window, f"site-{page.replace('/', '-')}-{scheme}-{width}")
        found[page] = await faults(window)
        too_wide[page] = await window.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    assert {page: those for page, those in found.items() if those} == {}
    assert {page: pixels for page, pixels in too_wide.items() if pixels > 0} == {}
    assert asked == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("quarter", range(4))
async def test_no_page_asks_for_what_is_not_there(
    address: str, site: Path, new_window: NewWindow, quarter: int
) -> None:
    """All pages, as a browser opens them: with what their scripts ask for, which no link shows."""
    window = await new_window()
    asked = asked_elsewhere(window, address)
    refused: list[str] = []

    def note(response: Response) -> None:
        if response.status >= 400:
            refused.append(f"{response.status} {response.url}")

    window.on("response", note)
    pages = places_of(site)[quarter::4]
    broken = {}
    for place in pages:
        await window.goto(f"{address}/{place}")
        broken[place] = await window.evaluate(
            "Array.from(document.images).filter(image => !image.naturalWidth).map(image => image.src)"
        )

    assert len(pages) > 30
    assert refused == []
    assert {place: images for place, images in broken.items() if images} == {}
    assert asked == []


async def test_the_keyboard_skips_to_the_content_and_searches(
    address: str, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(f"{address}/guides/messages.html")
    await window.keyboard.press("Tab")
    await expect(window.get_by_role("link", name="Skip to content")).to_be_focused()
    await window.keyboard.press("Enter")
    await expect(window).to_have_url(re.compile("#__skip$"))

    await window.keyboard.press("Control+k")
    await expect(window.get_by_role("combobox", name="Search")).to_be_focused()
    await search(window, "OpenID", "guides/openid-connect")
    await window.keyboard.press("ArrowDown")
    await window.keyboard.press("Enter")
    await expect(window).not_to_have_url(re.compile("guides/messages"))

    await window.goto(f"{address}/guides/messages.html")
    await window.keyboard.press("Control+k")
    await window.keyboard.press("Escape")
    await expect(window.get_by_role("combobox", name="Search")).to_be_hidden()


async def test_the_russian_pages_are_russian_and_lead_to_the_english_and_back(
    address: str, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(f"{address}/tutorial.html")
    await expect(window.locator("html")).to_have_attribute("lang", "en")
    await window.get_by_role("link", name="Русский", exact=True).click()
    await window.wait_for_url(f"{address}/ru/tutorial.html")
    await expect(window.locator("html")).to_have_attribute("lang", "ru")
    tabs = window.get_by_role("navigation", name="Вкладки")
    await expect(tabs.get_by_role("link", name="Учебник")).to_be_visible()
    await expect(window.get_by_role("navigation", name="Содержание")).to_be_visible()

    await window.get_by_role("button", name="Поиск").click()
    await search(window, "вебхуками", "ru/tutorial", box="Поиск")
    await search(window, "idempotency", "api/index", box="Поиск")
    await window.keyboard.press("Escape")
    await window.get_by_role("link", name="English", exact=True).click()
    await window.wait_for_url(f"{address}/tutorial.html")

    # A page that is there in English alone leads to the first Russian one.
    await window.goto(f"{address}/guides/messages.html")
    await window.get_by_role("link", name="Русский", exact=True).click()
    await window.wait_for_url(f"{address}/ru/index.html")


async def test_the_language_chosen_for_one_example_is_that_of_all(
    address: str, new_window: NewWindow
) -> None:
    window = await new_window()
    await window.goto(f"{address}/api/otp.html")
    await window.get_by_text("TypeScript", exact=True).first.click()

    shown = window.locator(".tabbed-block:visible code")
    await expect(shown).to_have_count(5)
    for text in await shown.all_inner_texts():
        assert "@msgsvc/client" in text


async def test_the_search_finds_ten_words(address: str, new_window: NewWindow) -> None:
    window = await new_window()
    await window.goto(f"{address}/index.html")
    await window.get_by_role("button", name="Search").click()
    for text, page in WORDS.items():
        await search(window, text, page)


async def test_pages_opened_as_files_can_be_searched(site: Path, new_window: NewWindow) -> None:
    window = await new_window()
    asked = asked_elsewhere(window, site.as_uri())
    await window.goto((site / "guides" / "messages.html").as_uri())
    await window.get_by_role("button", name="Search").click()

    await search(window, "snooze", "guides/helpdesk")

    # The search makes itself a frame, which has no address.
    assert [url for url in asked if url != "about:blank"] == []


async def test_the_scheme_is_that_of_the_system_until_one_is_chosen(
    address: str, new_window: NewWindow
) -> None:
    window = await new_window(scheme="dark")
    await window.goto(f"{address}/index.html")
    body = window.locator("body")

    await expect(body).to_have_css("color-scheme", "dark")
    await window.get_by_title("Switch to light mode").click()
    await expect(body).to_have_css("color-scheme", "light")
    await window.get_by_role("link", name="API", exact=True).first.click()
    await expect(body).to_have_css("color-scheme", "light")
