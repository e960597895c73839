"""The dashboard in real Chromium: by the keyboard, on a phone, and every page with texts that try to run.

Which pages there are is read from the areas; tests/pictures looks at each, also with axe-core.
"""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.dashboard.walking import Walk
from tests.e2e.furnished import Furnished, furnished
from tests.e2e.hostile import ASKED, WORST, Filling
from tests.e2e.refilling import NOT_SHOWN_AGAIN, SANDBOX, Refilling
from tests.e2e.windows import NewWindow

pytestmark = pytest.mark.browser

#: Elements that only a text of somebody's can have brought into a page of ours.
INTRUDERS = (
    "script:not([src]), style, iframe, object, embed, base, marquee, tg-spoiler, img[src='x'],"
    " [onerror], [onload], [onclick], [onfocus], [onmouseover], [ontoggle], [onbegin],"
    " a[href^='javascript:'], a[href^='tg:'], main svg animate"
)


async def whole_pages(place: Furnished, windows_of: list[Page]) -> AsyncIterator[tuple[Walk, Page]]:
    """Every page, opened by who may, but for fragments and files."""
    owners, operators = windows_of
    await place.enter(owners.context, place.owner)
    await place.enter(operators.context, place.operator)
    for walk in place.walks:
        page = owners if place.who(walk) is place.owner else operators
        answer = await place.who(walk).client.get(walk.url)
        assert answer.status_code in {200, 303}, f"{walk} answers {answer.status_code}"
        if '<main id="main"' in answer.text:
            await page.goto(place.url + walk.url)
            yield walk, page


async def test_the_skip_link_leads_to_the_content_and_menus_open_by_keyboard(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await new_window()
    await place.enter(page.context, place.owner)
    await page.goto(f"{place.url}{place.owner.url('')}")
    keys = page.keyboard

    await keys.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await expect(page.locator(".skip")).to_be_in_viewport()
    await keys.press("Enter")
    await expect(page.locator("main")).to_be_focused()

    account = page.locator("button[popovertarget=account]")
    await account.focus()
    await keys.press("Enter")
    menu = page.locator("#account")
    await expect(menu).to_be_visible()
    await keys.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(account).to_be_focused()

    await keys.press("Enter")
    await menu.get_by_role("button", name="Dark").focus()
    await keys.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.locator("button[popovertarget=account]").click()
    await page.get_by_role("button", name="Русский").click()
    await expect(page.locator("h1")).to_have_text("Обзор")
    await page.locator("button[popovertarget=account]").click()
    await page.get_by_role("button", name="English").click()
    await expect(page.locator("h1")).to_have_text("Overview")


async def test_the_arrow_keys_read_the_days_of_a_chart_and_a_period_is_chosen(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await place.open(new_window, "", scripts=True)
    chart = page.get_by_role("region", name="Messages")
    plot, keys = chart.locator(".plot"), page.keyboard

    await expect(plot.locator(".tip:visible")).to_have_count(0)
    await plot.focus()
    await keys.press("End")
    await expect(plot.get_by_role("status")).to_contain_text("15 Jan 2026, Delivered")
    await keys.press("ArrowLeft")
    await expect(plot.get_by_role("status")).to_contain_text("14 Jan 2026, Delivered")
    await expect(plot.locator(".tip:visible")).to_have_count(1)
    await page.get_by_role("navigation", name="Period").get_by_role("link", name="7 days").click()

    await expect(page.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "true")
    await expect(page.locator(".plot").first.locator(".days > div")).to_have_count(7)


async def test_the_pages_open_from_a_menu_on_a_phone_also_without_scripts(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await new_window(320, 640, scripts=False)
    await place.enter(page.context, place.owner)
    await page.goto(f"{place.url}{place.owner.url('')}")
    pages = page.locator("#pages")

    await expect(pages).to_be_hidden()
    await page.get_by_role("button", name="Menu").click()
    await expect(pages).to_be_visible()
    await expect(pages.locator("a[aria-current=page]")).to_have_text("Overview")
    await pages.get_by_role("button", name="Close").click()
    await expect(pages).to_be_hidden()


async def test_a_service_that_is_away_is_told_once_and_not_in_the_pages_place(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await new_window()
    await place.enter(page.context, place.owner)
    await page.goto(f"{place.url}{place.owner.url('')}")
    ask = f"htmx.ajax('GET', '{place.owner.url('')}', 'h1')"

    await page.route("**/dashboard/**", lambda route: route.abort())
    for _ in range(2):
        await page.evaluate(f"{ask}.catch(() => null)")
    await expect(page.locator("#problem .notice")).to_have_count(1)
    await page.unroute("**/dashboard/**")

    await page.context.clear_cookies()
    await page.evaluate(f"{ask}.catch(() => null)")
    await page.wait_for_url("**/dashboard/sign-in?next=**")


@pytest.mark.slow
async def test_a_refusal_stays_while_a_part_of_the_page_asks_again_and_again(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await new_window()
    await place.enter(page.context, place.owner)
    webhook = place.owner.url(f"/webhooks/{place.ids['webhook_id']}")
    await page.goto(f"{place.url}{webhook}")
    problem = page.locator("#problem .notice")
    after_poll = """
        new Promise((done) => document.addEventListener("htmx:afterSettle", done, { once: true }))
            .then(() => null)
    """

    # An answer that the list does not have, e.g. from a page of an earlier version.
    status = page.get_by_label("Status")
    await status.evaluate("one => { one.append(new Option('Lost', 'lost')); }")
    await status.select_option("lost")
    await expect(problem).to_be_visible()
    await page.evaluate(after_poll)
    await expect(problem).to_be_visible()
    await status.select_option("")
    await expect(problem).to_have_count(0)

    # What the part itself was refused is over when it gets an answer again.
    await page.route("**/webhooks/**", lambda route: route.abort())
    await expect(problem).to_be_visible()
    await page.unroute("**/webhooks/**")
    await expect(problem).to_have_count(0, timeout=10_000)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_no_text_of_anybodys_runs_on_any_page(
    tmp_path_factory: pytest.TempPathFactory, new_window: NewWindow
) -> None:
    dialogs: list[str] = []
    found, seen = [], 0
    folder = tmp_path_factory.mktemp("hostile")
    async with furnished(folder, '"><img src=x onerror=alert(1)>', more=SANDBOX) as hostile:
        filling = Filling(hostile)
        await filling.names()
        hostile.ids |= await filling.texts()
        # A refusal by the policy of a page fails the test, too: see `windows`.
        opened = [await new_window(), await new_window()]
        for window in opened:
            window.on("dialog", lambda dialog: dialogs.append(dialog.message))

        async for walk, page in whole_pages(hostile, opened):
            seen += 1
            if intruders := await page.locator(INTRUDERS).count():
                found.append(f"{walk}: {intruders} intruders")
            for asked in ASKED:
                params = dict.fromkeys(asked, WORST)
                answer = await hostile.who(walk).client.get(
                    walk.url, params=params, follow_redirects=True
                )
                is_refused = len(asked) > 1 and not answer.is_success
                if answer.status_code >= 500 or is_refused or WORST in answer.text:
                    found.append(f"{walk}, asked for {asked}: {answer.status_code}")
        refilling = Refilling(hostile, opened[0], INTRUDERS)
        await refilling.dashboard()
        await refilling.strangers()
        await refilling.branded()

    assert filling.taken["people"] == 60
    assert min(filling.taken[path] for path in ("/v1/send", "/v1/tickets", "/v1/templates")) > 50
    assert seen
    assert not found, "\n".join(found)
    assert not refilling.found, "\n".join(refilling.found)
    assert refilling.lost == NOT_SHOWN_AGAIN
    assert refilling.forms > 50
    assert refilling.names > 50
    assert not dialogs
