"""The API reference that a service serves, in Chromium: searched, read in a language, and tried."""

import pytest
from playwright.async_api import expect

from tests.e2e.furnished import Furnished
from tests.e2e.windows import NewWindow, Scheme, faults, picture

pytestmark = pytest.mark.browser


async def test_an_operation_is_found_read_in_a_language_and_tried(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await new_window(1440)
    await page.goto(f"{place.url}/docs")
    await page.keyboard.press("/")
    await page.keyboard.type("queues a message one subscriber")
    operations = page.locator(".operation:visible")
    await expect(operations).to_have_count(1)
    await expect(page.locator(".side [data-of]:visible")).to_have_text("POST/send")
    await page.get_by_role("radio", name="Python").check()
    await expect(operations.get_by_text("answer = client.messages.send(")).to_be_visible()
    await expect(operations.get_by_text("curl https://")).to_be_hidden()

    await page.get_by_role("button", name="Try it: POST /v1/send", exact=True).click()
    form = operations.locator("form")
    await form.get_by_label("API key").fill(place.tenant.key)
    await form.get_by_label("Body").fill(
        f'{{"subscriber_id": "{place.ids["subscriber_id"]}", "text": "Hi"}}'
    )
    await form.get_by_role("button", name="Send POST").click()
    await expect(form.get_by_role("status")).to_contain_text("202")
    await expect(form.get_by_role("status")).to_contain_text('"message_id": "msg_')
    await picture(page, "api-page")
    await page.reload()
    await expect(page.get_by_role("radio", name="Python")).to_be_checked()


async def test_it_says_when_nothing_is_found(place: Furnished, new_window: NewWindow) -> None:
    page = await new_window()
    await page.goto(f"{place.url}/docs")
    await page.get_by_role("searchbox").fill("no such thing")

    await expect(page.get_by_text("No operation matches.")).to_be_visible()
    await expect(page.locator(".operation:visible")).to_have_count(0)


async def test_it_is_read_without_scripts(place: Furnished, new_window: NewWindow) -> None:
    page = await new_window(scripts=False)
    await page.goto(f"{place.url}/docs#send")
    send = page.locator("#send")

    await expect(send.get_by_text("curl https://")).to_be_visible()
    await page.get_by_role("radio", name="TypeScript").check()
    await expect(send.get_by_text("await client.messages.send(")).to_be_visible()
    await expect(page.get_by_role("searchbox")).to_have_count(0)
    await expect(page.get_by_role("button")).to_have_count(0)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
async def test_it_keeps_nobody_out_and_does_not_scroll_sideways(
    place: Furnished, new_window: NewWindow, scheme: Scheme, width: int
) -> None:
    page = await new_window(width, scheme=scheme, bypass_csp=True)
    await page.goto(f"{place.url}/docs")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

    assert await faults(page) == []
    assert await page.evaluate(wide) <= 0
