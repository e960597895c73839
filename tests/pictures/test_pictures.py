"""Every page looks as it did when somebody last looked at it, in one variant, and the gallery of components
in all of them. `make pictures` accepts how pages look now; `build/pictures/index.html` shows what differs."""

import os
from collections.abc import Iterable, Sequence

import pytest
from playwright.async_api import Browser

from tests.e2e.furnished import Furnished
from tests.pictures.comparing import (
    MOST_PIXELS,
    REPORT,
    Album,
    accepted_files,
    difference,
    drawn_here,
    drawn_there,
    is_drawn_alike,
    shrunk,
)
from tests.pictures.pages import Pictured
from tests.pictures.taking import take, take_probe, windows_of
from tests.pictures.variants import ALL, GALLERY, MAIN, Variant, variants_of

pytestmark = pytest.mark.browser

#: Set it, as `make pictures` does, to accept how pages look now.
ACCEPT_VARIABLE = "MSGSVC_ACCEPT_PICTURES"

#: On a busy machine Chromium may leave a part of a page undrawn, e.g. what scrolls in itself: what differs is
#: looked at again. What changed differs each time.
MORE_LOOKS = 3


def files_of(pages: Iterable[Pictured]) -> dict[str, tuple[Pictured, Variant]]:
    """The pictures that are kept, by the names of their files."""
    return {
        f"{page.name}.{variant}.webp": (page, variant)
        for page in pages
        for variant in variants_of(page.name)
    }


@pytest.mark.timeout(900)
async def test_every_page_looks_as_it_was_accepted(
    place: Furnished, browser: Browser, pages: Sequence[Pictured]
) -> None:
    accepting = bool(os.environ.get(ACCEPT_VARIABLE))
    here, there = drawn_here(), drawn_there()
    if not accepting and there is None:
        pytest.skip("no pictures were accepted yet: make pictures")
    if not accepting and here != there:
        pytest.skip(f"pictures were drawn with {there}, and here is {here}")
    if not is_drawn_alike(await take_probe(browser), accepting=accepting):
        pytest.skip("this machine draws letters and lines in another way")
    album, files = Album(accepting=accepting), files_of(pages)

    async with windows_of(browser, place) as windows:
        for file, (page, variant) in files.items():
            window = await windows.open(page, variant)
            picture = await take(page, window.page)
            for _ in range(MORE_LOOKS):
                if not album.differs(file, picture):
                    break
                picture = await take(page, window.page)
            album.add(file, picture)
    album.finish(files)

    assert not album.found, "\n".join([*album.found, f"see {REPORT / 'index.html'}"])


async def test_each_page_has_an_accepted_picture_and_no_picture_is_left_over(
    pages: Sequence[Pictured],
) -> None:
    files, accepted = set(files_of(pages)), accepted_files()

    missing, left_over = sorted(files - accepted), sorted(accepted - files)
    assert (missing, left_over) == ([], []), "make pictures accepts and drops them"


async def test_each_variant_is_drawn_by_some_page_besides_the_gallery(
    pages: Sequence[Pictured],
) -> None:
    drawn = [variants_of(page.name)[0] for page in pages if page.name != GALLERY]

    assert set(drawn) == set(ALL)
    assert drawn.count(MAIN) > len(drawn) / 3


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
    [gallery] = [page for page in pages if page.name == GALLERY]
    async with windows_of(browser, place) as windows:
        window = (await windows.open(gallery, MAIN)).page
        before = shrunk(await take(gallery, window))
        again = shrunk(await take(gallery, window))
        await window.evaluate(f"() => {{ {change} }}")
        after = shrunk(await take(gallery, window))

    assert difference(before, again)[0] == 0
    assert difference(before, after)[0] > 10 * MOST_PIXELS
