"""Every page, whatever the browser's version: it renders without an error or a refusal of its policy, never
scrolls sideways, and keeps nobody out, in both languages, wide and on a phone, by day and by night."""

from collections.abc import Sequence

import pytest
from playwright.async_api import Browser, Page

from tests.e2e.furnished import Furnished
from tests.e2e.windows import SIDEWAYS, faults
from tests.pictures.pages import Pictured
from tests.pictures.taking import SETTLED, VIEWPORTS, Size, windows_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

#: Pixels of the narrowest screen: a page enlarged four times on one of 1280.
NARROWEST = 320

#: Parts in which pages are looked at: a second and more each, on a busy machine.
PARTS = 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("size", ["wide", "phone"])
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_no_page_fails_scrolls_sideways_or_keeps_anybody_out(
    place: Furnished,
    browser: Browser,
    pages: Sequence[Pictured],
    lang: str,
    size: Size,
    part: int,
) -> None:
    found, seen = [], 0
    async with windows_of(browser, place, lang, size) as windows:
        async for page, window, complaints in windows.open(pages[part::PARTS]):
            seen += 1
            found += [f"{page.name}: {complaint}" for complaint in complaints]
            found += [f"{page.name} is too wide: {html}" for html in await _sideways(window, size)]
            # What a page is made of is the same in each language.
            if lang == "en":
                found += [f"{page.name}: {fault}" for fault in await faults(window)]
                await window.emulate_media(color_scheme="dark")
                await window.evaluate(SETTLED)
                dark = await faults(window, rules=("color-contrast",))
                found += [f"{page.name} in the dark: {fault}" for fault in dark]

    assert seen
    assert not found, "\n".join(found)


async def _sideways(window: Page, size: Size) -> list[str]:
    """Elements beyond the edge, on a phone also on the narrowest."""
    found: list[str] = await window.evaluate(SIDEWAYS)
    if size == "phone":
        width, height = VIEWPORTS[size]
        await window.set_viewport_size({"width": NARROWEST, "height": height})
        found += await window.evaluate(SIDEWAYS)
        await window.set_viewport_size({"width": width, "height": height})
    return found
