"""A walk over the site in a browser: people find, read and see it, without a network."""

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Request, expect

from msgsvc_devkit import until
from tests.e2e.windows import NewWindow, Scheme, browsing, faults, picture, windows

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
]

#: Pages of each kind, by the scheme in which axe looks at them: it takes seconds for each.
LIGHT = (
    "index",
    "tutorial",
    "api/otp",
    "reference/errors",
    "decisions/index",
    "plugins/channels/telegram",
)
DARK = (
    "guides/write-a-channel",
    "api/index",
    "ru/tutorial",
    "decisions/0107-docs-site",
    "SECURITY",
    "source/msgsvc_core/plugins/sign_ins.py",
)

#: What people search for, and a page that has to be among the first found.
WORDS = {
    "broadcast": "guides/broadcasts",
    "Idempotency-Key": "api/index",
    "webhooks": "guides/receive-webhooks",
    "OpenID": "guides/openid-connect",
    "backup": "operating",
    "PostgreSQL": "operating",
    "rate limit": "api/index",
    "drip campaign": "guides/drip",
    "helpdesk": "guides/helpdesk",
    "rotate": "operating",
}


#: How many results are looked at.
RESULTS = 10


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # its name there
        """Says nothing: the tests do."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as launched:
        yield launched


@pytest_asyncio.fixture(loop_scope="module")
async def new_window(browser: Browser) -> AsyncIterator[NewWindow]:
    async with windows(browser) as open_window:
        yield open_window


def asked_elsewhere(window: Page, address: str) -> list[str]:
    """Fills with what the page asks of others than the address."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            asked.append(request.url)

    window.on("request", note)
    return asked


async def search(window: Page, text: str, page: str) -> None:
    """Returns once the page is among the first results."""
    await window.get_by_role("combobox", name="Search").fill(text)

    async def found() -> bool:
        results = window.get_by_role("option")
        links: list[str] = await results.evaluate_all("links => links.map(link => link.href)")
        return any(f"/{page}.html" in link for link in links[:RESULTS])

    assert await until(found), (text, page)


@pytest.mark.parametrize(("scheme", "pages"), [("light", LIGHT), ("dark", DARK)])
async def test_axe_finds_nothing_serious_and_nothing_comes_from_elsewhere(
    address: str, new_window: NewWindow, scheme: Scheme, pages: Sequence[str]
) -> None:
    window = await new_window(scheme=scheme)
    asked = asked_elsewhere(window, address)
    found = {}
    for page in pages:
        await window.goto(f"{address}/{page}.html")
        await picture(window, f"site-{page.replace('/', '-')}-{scheme}")
        found[page] = await faults(window)

    assert {page: those for page, those in found.items() if those} == {}
    assert asked == []


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


async def test_pages_fit_a_phone(address: str, new_window: NewWindow) -> None:
    window = await new_window(width=390, height=800)
    widths = {}
    for page in (*LIGHT, *DARK):
        await window.goto(f"{address}/{page}.html")
        await picture(window, f"site-{page.replace('/', '-')}-390")
        widths[page] = await window.evaluate("document.documentElement.scrollWidth")

    assert {page: width for page, width in widths.items() if width > 390} == {}


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
