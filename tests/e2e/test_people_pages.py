"""Pages about people, in real Chromium: a message seen before it is sent, a permission that people granted.

`MSGSVC_TEST_SCREENS=1` leaves pictures of what is seen in build/screens.
"""

import pytest
from playwright.async_api import expect

from msgsvc_devkit import settled
from tests.e2e.furnished import Furnished
from tests.e2e.windows import NewWindow, picture

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no_scripts"])
async def test_somebody_is_found_written_to_and_the_message_is_followed(
    place: Furnished, new_window: NewWindow, scripts: bool
) -> None:
    page = await place.open(new_window, "/messages/new", scripts=scripts)

    await page.get_by_label("Name, username or your own ID").fill("an")
    if not scripts:
        await page.get_by_role("button", name="Search").click()
    await page.locator("#found").get_by_role("link", name="Ann").first.click()
    await page.get_by_label("Format").select_option("markdown")
    await page.get_by_label("Text", exact=True).first.fill("Your table is **ready**")
    if not scripts:
        await page.get_by_role("button", name="Preview").click()
    shown = page.locator("#preview .bubble-text")
    await expect(shown).to_have_text("Your table is ready")
    await expect(shown.locator(".mark-bold")).to_have_text("ready")
    await picture(page, f"compose-{'scripts' if scripts else 'plain'}")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("status")).to_have_text("The message is being sent.")
    await settled(place.service)
    if not scripts:
        await page.reload()

    await expect(page.locator("#state")).to_contain_text("Sent")


async def test_a_permission_that_people_granted_is_deleted_by_typing_how_many(
    place: Furnished, new_window: NewWindow
) -> None:
    client = place.tenant.client
    await client.post("/v1/permissions", json={"key": "trips", "title": "Trips"})
    subscriber_id = place.ids["subscriber_id"]
    await client.put(f"/v1/subscribers/{subscriber_id}/permissions/trips")
    page = await place.open(new_window, "/permissions", scripts=True)

    await page.get_by_role("link", name="Trips").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("1 active subscriber granted it.")
    await picture(page, "permission-delete")
    await page.get_by_label("Number of subscribers").fill("0")
    await page.get_by_role("button", name="Delete the permission").click()
    await expect(page.get_by_role("alert").filter(has_text="1 active")).to_be_visible()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.get_by_label("Number of subscribers").fill("1")
    await page.get_by_role("button", name="Delete the permission").click()

    await expect(page.get_by_role("status")).to_have_text("The permission is deleted.")
    await expect(page.get_by_role("link", name="Trips")).to_have_count(0)


async def test_a_filter_applies_as_it_is_chosen_and_keeps_the_focus(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await place.open(new_window, "/subscribers", scripts=True)
    search = page.get_by_role("searchbox", name="Search")
    results = page.locator("#results")

    await search.press_sequentially("nobody has this name")
    await expect(page.get_by_role("heading", name="No matching subscribers")).to_be_visible()
    await expect(search).to_be_focused()
    await expect(search).to_have_value("nobody has this name")
    await search.fill("")
    await expect(results.get_by_role("link", name="Ann")).to_be_visible()
    await page.get_by_label("Status").select_option("Unsubscribed")
    await expect(page.get_by_role("heading", name="No matching subscribers")).to_be_visible()
    await picture(page, "filters")
    assert "query=&status=unsubscribed" in page.url
    await page.go_back()

    await expect(results.get_by_role("link", name="Ann")).to_be_visible()


async def test_a_filter_has_a_button_where_there_are_no_scripts(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await place.open(new_window, "/subscribers", scripts=False)

    await page.get_by_label("Status").select_option("Unsubscribed")
    await page.get_by_role("button", name="Apply").click()

    await expect(page.get_by_role("heading", name="No matching subscribers")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no_scripts"])
async def test_a_route_is_made_of_rows_that_are_added_and_moved(
    place: Furnished, new_window: NewWindow, scripts: bool
) -> None:
    name = f"Night {'with' if scripts else 'without'} scripts"
    page = await place.open(new_window, "/routes/new", scripts=scripts)

    await page.get_by_label("Route name").fill(name)
    await page.get_by_label("Channel").nth(0).select_option("Messenger A")
    await page.get_by_label("Wait before the next step, seconds").nth(0).fill("60")
    await page.get_by_label("Channel").nth(1).select_option("ann_bot")
    await page.get_by_role("button", name="Add step").click()
    await expect(page.get_by_text("Step 3", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Move down").nth(0).click()
    await expect(page.get_by_label("Channel").nth(1)).to_have_value("messenger_a")
    await expect(page.get_by_label("Route name")).to_have_value(name)
    await picture(page, f"route-{'scripts' if scripts else 'plain'}")
    await page.get_by_role("button", name="Save", exact=True).click()

    await expect(page.get_by_role("status")).to_have_text("The route is saved.")
    await expect(page.get_by_text("Step 3", exact=True)).to_have_count(0)
    await expect(page.get_by_label("Channel").nth(1)).to_have_value("messenger_a")
