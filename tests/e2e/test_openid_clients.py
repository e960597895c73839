"""The pages of OpenID clients in real Chromium: all of it without scripts, and the button that copies."""

import pytest
from playwright.async_api import expect

from tests.e2e.furnished import Furnished
from tests.e2e.windows import NewWindow

pytestmark = [pytest.mark.browser, pytest.mark.slow]


async def test_a_client_is_added_checked_and_deleted_on_a_phone_without_scripts(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await new_window(360, 700, scripts=False)
    await place.enter(page.context, place.owner)
    await page.goto(place.url + place.owner.url("/oidc/new"))
    await page.get_by_label("Name", exact=True).fill("Wiki")
    await page.get_by_label("Redirect URIs").fill("https://wiki.example/callback")
    await page.get_by_role("button", name="Add a client").click()
    await expect(page.locator("code.secret")).to_contain_text("mos_")
    await expect(page.locator("button[data-copy]").first).to_be_hidden()

    await page.get_by_role("link", name="To the client").click()
    await page.get_by_label("Check a redirect URI").fill("https://wiki.example/callback/")
    await page.get_by_role("button", name="Check").click()
    await expect(page.get_by_role("status")).to_contain_text("The slash at the end differs")

    await page.get_by_role("button", name="Delete").last.click()
    await page.get_by_role("button", name="Delete the client").click()
    await expect(page.locator("h1")).to_have_text("OpenID clients")
    await expect(page.get_by_role("link", name="Wiki")).to_have_count(0)


async def test_the_client_id_is_copied_by_keyboard(place: Furnished, new_window: NewWindow) -> None:
    page = await new_window()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await place.enter(page.context, place.owner)
    client_id = place.ids["client_id"]
    await page.goto(place.url + place.owner.url(f"/oidc/{client_id}"))
    button = page.locator("code", has_text=client_id).locator("xpath=../button")
    await button.focus()
    await page.keyboard.press("Enter")

    await expect(button).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == client_id
