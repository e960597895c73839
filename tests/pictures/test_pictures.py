"""Every page looks as it did when somebody last looked at it, by day and by night, wide and on a phone, in
both languages. `make pictures` accepts how pages look now; `build/pictures/index.html` shows what differs."""

import os
from collections.abc import Sequence

import pytest
from playwright.async_api import Browser, Page

from tests.e2e.furnished import Furnished
from tests.e2e.windows import Scheme
from tests.pictures.comparing import (
    MOST_PIXELS,
    REPORT,
    Album,
    difference,
    drawn_here,
    drawn_there,
    is_drawn_alike,
    shrunk,
)
from tests.pictures.pages import Pictured, pictured
from tests.pictures.taking import Size, take, take_probe, windows_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

#: Set it, as `make pictures` does, to accept how pages look now.
ACCEPT_VARIABLE = "MSGSVC_ACCEPT_PICTURES"

#: By day, then by night.
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

#: On a busy machine Chromium may leave a part of a page undrawn, e.g. what scrolls in itself: what differs is
#: looked at again. What changed differs each time.
MORE_LOOKS = 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", ["wide", "phone"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_every_page_looks_as_it_was_accepted(
    untouched: Furnished, browser: Browser, lang: str, size: Size
) -> None:
    accepting = bool(os.environ.get(ACCEPT_VARIABLE))
    here, there = drawn_here(), drawn_there()
    if not accepting and there is None:
        pytest.skip("no pictures were accepted yet: make pictures")
    if not accepting and here != there:
        pytest.skip(f"pictures were drawn with {there}, and here is {here}")
    if not is_drawn_alike(await take_probe(browser), accepting=accepting):
        pytest.skip("this machine draws letters and lines in another way")
    album = Album(f"{lang}.{size}", accepting=accepting)

    # The reference of the API is in English.
    pages = await pictured(untouched)
    shown = [page for page in pages if lang == "en" or not page.name.startswith("docs.")]
    async with windows_of(browser, untouched, lang, size) as windows:
        async for opened in windows.open(shown):
            for scheme in SCHEMES:
                picture = await take(opened, scheme)
                for _ in range(MORE_LOOKS):
                    if not album.differs(opened.page.name, scheme, picture):
                        break
                    picture = await take(opened, scheme)
                album.add(opened.page.name, scheme, picture)
    album.finish()

    assert not album.found, "\n".join([*album.found, f"see {REPORT / 'index.html'}"])


@pytest.mark.parametrize(
    "change",
    [
        "document.querySelector('#buttons .button').style.marginInlineStart = '2px'",
        "document.documentElement.style.setProperty('--accent', '#1b7d60')",
    ],
    ids=["a button 2 px aside", "another accent"],
)
async def test_a_small_change_is_found_and_a_second_picture_is_the_same(
    place: Furnished, browser: Browser, pages: Sequence[Pictured], change: str
) -> None:
    [gallery] = [page for page in pages if page.name == "gallery.account-gallery"]
    async with windows_of(browser, place, "en", "wide") as windows:
        async for opened in windows.open([gallery]):
            before = shrunk(await take(opened, "light"))
            again = shrunk(await take(opened, "light"))
            await _change(opened.window, change)
            after = shrunk(await take(opened, "light"))

    assert difference(before, again)[0] == 0
    assert difference(before, after)[0] > 10 * MOST_PIXELS


async def _change(window: Page, script: str) -> None:
    await window.evaluate(f"() => {{ {script} }}")
