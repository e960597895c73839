"""Every page, whatever the browser's version, in both languages, on a screen and on a phone, by day and by
night: it renders without an error or a refusal of its policy, fits, keeps nobody out, and speaks the reader's
language."""

from collections.abc import AsyncIterator, Sequence
from typing import get_args

import pytest
from playwright.async_api import Browser

from tests.e2e.furnished import Furnished
from tests.e2e.windows import faults
from tests.pictures.layout import layout_faults, navigation_faults, untranslated
from tests.pictures.pages import Pictured
from tests.pictures.taking import Window, windows_of
from tests.pictures.variants import GALLERY, MAIN, Lang, Size

pytestmark = pytest.mark.browser

#: Pixels of a screen, of a phone, and of the narrowest screen: a page enlarged four times on one of 1280.
WIDTHS: list[tuple[Size, int]] = [("wide", 1440), ("phone", 390), ("phone", 320)]

#: Parts in which pages are looked at: a second and more each, on a busy machine.
PARTS = 2

#: Pages in English only.
ENGLISH = "docs."

#: What axe-core looks at once more by night, and what it looks at only if it is asked to.
IN_THE_DARK: dict[Size, Sequence[str]] = {
    "wide": ["color-contrast"],
    "phone": ["color-contrast", "target-size"],
}

#: What there are hundreds of on a page, all built alike, beyond the first two: axe-core takes minutes for
#: all, at which it looks in tests/e2e/test_api_page.py.
ALIKE = {"docs.reference": ".operation ~ .operation ~ .operation"}

REMOVE = "(selector) => { for (const one of document.querySelectorAll(selector)) one.remove(); }"

#: What spoils the gallery, each by another of its elements, by what is found then.
SPOILT = {
    "it scrolls sideways": "main.append(Object.assign(new Image(2000, 9), { style: 'max-width: none' }))",
    "leaves": "buttons[0].style = 'width: 20px; padding: 0; white-space: nowrap'",
    "is cut off by": "buttons[1].style = 'width: 20px; padding: 0; white-space: nowrap; overflow: hidden'",
    "overlaps": "buttons[4].style.marginInlineEnd = '-30px'",
    "untranslated": "buttons[7].textContent = 'Save all'",
    "out of a finger's reach": "document.querySelector('#pages a').style.pointerEvents = 'none'",
    "color-contrast": "main.querySelector('.lead').style.color = 'light-dark(#111, #444)'",
    "target-size": "buttons[2].style = buttons[3].style = TINY",
    "Uncaught": "setTimeout(() => { throw new Error('Uncaught'); })",
}

FIND = """
  const main = document.querySelector("main"), buttons = main.querySelectorAll("#buttons .button");
  const TINY = "width: 9px; min-width: 0; height: 9px; min-height: 0; padding: 0";
"""

#: Found in one language alone.
IN_ONE = {"color-contrast": "en", "target-size": "en", "untranslated": "ru"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_no_page_fails_overflows_keeps_anybody_out_or_mixes_languages(
    place: Furnished, browser: Browser, pages: Sequence[Pictured], lang: Lang, part: int
) -> None:
    found, seen = [], 0
    async with windows_of(browser, place) as windows:
        for page in pages[part::PARTS]:
            seen += 1
            window = await windows.open(page, MAIN._replace(lang=lang))
            found += [f"{page.name}, {fault}" async for fault in _faults(page, window, lang)]

    assert seen
    assert not found, "\n".join(found)


@pytest.mark.parametrize("lang", ["en", "ru"])
async def test_each_fault_of_a_page_is_found(
    place: Furnished, browser: Browser, pages: Sequence[Pictured], lang: Lang
) -> None:
    [gallery] = [page for page in pages if page.name == GALLERY]
    async with windows_of(browser, place) as windows:
        window = await windows.open(gallery, MAIN._replace(lang=lang))
        await window.page.evaluate(f"() => {{ {FIND} {'; '.join(SPOILT.values())}; }}")
        found = "\n".join([each async for each in _faults(gallery, window, lang)])

    expected = {fault for fault in SPOILT if IN_ONE.get(fault, lang) == lang}
    assert {fault for fault in SPOILT if fault in found} == expected, found


async def _faults(page: Pictured, window: Window, lang: Lang) -> AsyncIterator[str]:
    """What is wrong with a page that is open on a screen by day, with the variant in which it is wrong."""
    for size, width in WIDTHS:
        await window.resize(size, width)
        for fault in await layout_faults(window.page):
            yield f"{lang}, {width} px: {fault}"
        for fault in await navigation_faults(window.page) if size == "phone" else ():
            yield f"{lang}, {width} px: {fault}"
    if lang == "en":
        async for fault in _barriers(page, window):
            yield f"{lang}, {fault}"
    elif not page.name.startswith(ENGLISH):
        for fault in await untranslated(window.page):
            yield f"{lang}: {fault}"
    for complaint in window.complaints:
        yield f"{lang}: {complaint}"


async def _barriers(page: Pictured, window: Window) -> AsyncIterator[str]:
    """What keeps people out, which is the same in each language."""
    if page.name in ALIKE:
        await window.page.evaluate(REMOVE, ALIKE[page.name])
    for size in get_args(Size):
        await window.resize(size)
        for fault in await faults(window.page):
            yield f"{size}, light: {fault}"
        await window.colour("dark")
        for fault in await faults(window.page, IN_THE_DARK[size]):
            yield f"{size}, dark: {fault}"
        await window.colour("light")
