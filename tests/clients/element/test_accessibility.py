"""The element for those who see, hear, move and hold it differently, in real Chromium."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.clients.element.site import Site
from tests.e2e.windows import NewWindow, Scheme, faults, picture, read_qr

pytestmark = pytest.mark.browser


async def begin(window: Page, address: str) -> None:
    await window.goto(address)
    await window.locator("msgsvc-signin > a").click()
    await expect(window.locator("a[data-channel=messenger_a]")).to_be_visible()


async def width_needed(window: Page) -> int:
    """Of the page and of the panel, whichever is wider."""
    found: int = await window.evaluate(
        "(() => { const panel = document.querySelector('msgsvc-signin').shadowRoot.querySelector('dialog');"
        " const over = panel.scrollWidth - panel.clientWidth;"
        " return Math.max(document.documentElement.scrollWidth, innerWidth + over); })()"
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_axe_finds_nothing_serious(
    site: Site, new_window: NewWindow, width: int, scheme: Scheme
) -> None:
    # What checks accessibility is a script in the page.
    window = await new_window(width, 720, scheme=scheme, bypass_csp=True)
    for attributes in ("", "inline"):
        site.begun = {"expires_in": 50}
        await begin(window, site.page(attributes))
        assert await faults(window) == [], attributes
    site.begun, site.refuses_status = {}, 404
    await window.goto(site.page())
    await window.locator("msgsvc-signin > a").click()
    await expect(window.get_by_role("button", name="Try again")).to_be_visible()
    assert await faults(window) == []


async def test_everything_is_reached_by_keyboard_and_seen_to_be(
    site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await begin(window, site.page(strict="1"))
    reached = []
    for _ in range(5):
        await window.keyboard.press("Tab")
        reached.append(
            await window.evaluate(
                "(() => { const at = document.querySelector('msgsvc-signin').shadowRoot.activeElement;"
                " return [at.textContent, getComputedStyle(at).outlineStyle]; })()"
            )
        )

    assert reached == [
        ["Open Messenger_a (opens in a new tab)", "solid"],
        ["Open Messenger_b (opens in a new tab)", "solid"],
        ["QR code for Messenger_a", "solid"],
        ["QR code for Messenger_b", "solid"],
        ["Cancel", "solid"],
    ]


@pytest.mark.parametrize("attributes", ["", "inline"])
async def test_text_of_twice_the_size_needs_no_more_width(
    site: Site, new_window: NewWindow, attributes: str
) -> None:
    for width in (640, 320):
        window = await new_window(width, 720)
        await begin(window, site.page(attributes))
        await window.evaluate("document.documentElement.style.fontSize = '200%'")
        await picture(window, f"element-{attributes or 'dialog'}-twice-{width}")
        assert await width_needed(window) <= width


async def test_forced_colours_leave_buttons_borders_and_a_code_that_scans(
    site: Site, new_window: NewWindow, tmp_path: Path
) -> None:
    window = await new_window(scheme="dark")
    await window.emulate_media(forced_colors="active", color_scheme="dark")
    await begin(window, site.page(strict="1"))
    await picture(window, "element-forced-colours")
    link = window.locator("a[data-channel=messenger_a]")

    assert await link.evaluate("link => getComputedStyle(link).borderTopWidth") == "1px"
    assert await read_qr(window, tmp_path) == await link.get_attribute("href")


async def test_nothing_moves_for_those_who_want_it_still(site: Site, new_window: NewWindow) -> None:
    window = await new_window()
    await begin(window, site.page())
    moves = "pulse => getComputedStyle(pulse).animationName"
    pulse = window.locator("[part=pulse]")
    still = await pulse.evaluate(moves)
    await window.emulate_media(reduced_motion="no-preference")

    assert (still, await pulse.evaluate(moves)) == ("none", "breathe")


async def test_right_to_left_is_mirrored(site: Site, new_window: NewWindow) -> None:
    window = await new_window()
    await begin(window, site.page("data-lead=x", dir="rtl", lang="ar"))
    await picture(window, "element-right-to-left")
    places = [
        await window.locator(f"[part={part}]").evaluate("it => it.getBoundingClientRect().left")
        for part in ("pulse", "status", "time")
    ]

    assert places == sorted(places, reverse=True)
    assert await width_needed(window) <= 1280


async def test_cancel_is_seen_beside_an_open_code_without_scrolling(
    site: Site, new_window: NewWindow
) -> None:
    window = await new_window(1280, 720)
    await begin(window, site.page())
    await expect(window.get_by_role("img", name="QR code for Messenger_a")).to_be_visible()
    await expect(window.locator("[part=number]")).to_be_visible()
    panel = window.get_by_role("dialog")

    assert await panel.evaluate("it => it.scrollHeight <= it.clientHeight")
    await expect(window.get_by_role("button", name="Cancel")).to_be_in_viewport(ratio=1)


#: The language of an element's text, and its direction.
LANGUAGE = """it => [
  it.closest('[lang]')?.lang ?? document.documentElement.lang, getComputedStyle(it).direction,
]"""


async def test_english_stays_left_to_right_where_the_page_is_not(
    site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    await begin(window, site.page(dir="rtl", lang="ar"))
    await picture(window, "element-english-in-right-to-left")
    parts = ("lead", "link", "summary", "status", "time", "cancel")
    found = [await window.locator(f"[part={part}]").first.evaluate(LANGUAGE) for part in parts]

    assert found == [["en", "ltr"]] * len(parts)


async def test_of_texts_that_a_page_gives_in_part_each_has_its_own_language(
    site: Site, new_window: NewWindow
) -> None:
    """Only the status is Arabic: after it comes one that is not."""
    window = await new_window()
    await begin(window, site.page("data-waiting='بانتظار ردك'", dir="rtl", lang="ar"))
    status = window.locator("[part=status]")
    waiting = await status.evaluate(LANGUAGE)
    lead = await window.locator("[part=lead]").evaluate(LANGUAGE)
    panel = await window.get_by_role("dialog").evaluate(LANGUAGE)
    await window.context.set_offline(True)
    await expect(status).to_have_text("No connection. Trying again…")
    offline = await status.evaluate(LANGUAGE)

    assert (panel, waiting) == (["ar", "rtl"], ["ar", "rtl"])
    assert (lead, offline) == (["en", "ltr"], ["en", "ltr"])


async def test_the_number_comes_in_a_live_region_that_was_there_before(
    site: Site, new_window: NewWindow
) -> None:
    window = await new_window()
    pressed: asyncio.Future[Route] = asyncio.get_running_loop().create_future()
    await window.route("**/signin", lambda route: pressed.set_result(route))  # noqa: PLW0108 # a builtin takes no marks of playwright
    await window.goto(site.page())
    await window.locator("msgsvc-signin > a").click()
    region = window.locator("[aria-live=polite]")
    await expect(region).to_have_text("Sign in to Shop", use_inner_text=True)
    await region.evaluate(
        "it => { window.heard = []; new MutationObserver(changes => heard.push(...changes))"
        ".observe(it, { subtree: true, childList: true, characterData: true }); }"
    )
    await (await pressed).continue_()
    await expect(region.locator("[part=number]")).to_be_visible()
    await expect(region).to_have_text(re.compile(r"choose this number there:\d\d"))
    before = await window.evaluate("heard.length")
    # The time goes on each second; the number is not said anew.
    time = window.locator("[part=time]")
    shown = await time.inner_text()
    await expect(time).not_to_have_text(shown)

    assert await window.evaluate("heard.length") == before


async def test_a_phone_opens_the_messenger_first_and_folds_the_codes(
    site: Site, browser: Browser
) -> None:
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    phone = await context.new_page()
    await begin(phone, site.page())
    await picture(phone, "element-phone")

    await expect(phone.locator("svg:visible")).to_have_count(0)
    box = await phone.locator("a[data-channel=messenger_a]").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 844
    async with phone.expect_popup() as opened:
        await phone.locator("a[data-channel=messenger_a]").tap()
    # What opens knows nothing of the page, which waits.
    assert await (await opened.value).evaluate("opener") is None
    await expect(phone.get_by_role("status")).to_have_text(
        "Waiting for your answer in the messenger…"
    )
    await context.close()
