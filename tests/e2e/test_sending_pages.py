"""Pages that send, in real Chromium: a broadcast from its first word to its end, and a chain put in order.

`MSGSVC_TEST_SCREENS=1` leaves pictures of what is seen in build/screens.
"""

import pytest
from playwright.async_api import expect

from tests.e2e.furnished import Furnished
from tests.e2e.windows import NewWindow, picture

#: Pixels: what breaks into two lines of small text is higher.
TWO_LINES = 30

pytestmark = pytest.mark.browser


async def test_a_broadcast_is_counted_previewed_sent_and_watched(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await place.open(new_window, "/broadcasts/new", scripts=True)
    reach = page.locator("#reach")

    await expect(reach).to_contain_text("1 person")
    await page.get_by_label("Subscribers who match these filters").check()
    await page.locator('[name="langs"][value="ru"]').check()
    await expect(reach).to_contain_text("0 people")
    await page.get_by_label("All subscribers").check()
    await expect(reach).to_contain_text("1 person")
    await expect(page.get_by_label("Day and time")).to_be_hidden()
    await page.get_by_label("Text", exact=True).first.fill("Hello **{{ first_name }}**")
    await page.get_by_label("Format").select_option("markdown")
    # One person is reached half a second after the page of the broadcast is there.
    await page.get_by_label("Messages per minute, at most").fill("120")
    await page.get_by_label("Name", exact=True).fill("Spring sale")
    await expect(page.locator("#preview .mark-bold")).to_have_text("Alex")
    await picture(page, "broadcast-written")
    await page.get_by_role("button", name="Review and send").click()
    await expect(page.locator(".mark-bold").first).to_have_text("Alex")
    await picture(page, "broadcast-looked-at")
    await page.get_by_role("button", name="Edit").click()
    await expect(page.get_by_label("Text", exact=True).first).to_have_value(
        "Hello **{{ first_name }}**"
    )
    await page.get_by_role("button", name="Review and send").click()
    await page.get_by_role("button", name="Send to 1 person").click()
    progress = page.locator("#progress")
    await expect(progress).to_contain_text("Completed")
    await expect(progress).to_contain_text("1 of 1")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Spring sale")
    await progress.get_by_role("link", name="Sent").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.go_back()
    await picture(page, "broadcast-sent")


async def test_a_broadcast_is_previewed_and_sent_without_scripts(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await place.open(new_window, "/broadcasts/new", scripts=False)
    text = page.get_by_label("Text", exact=True).first

    await text.fill("Hello {{ first_name }}")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("#preview .bubble-text").first).to_have_text("Hello Alex")
    await expect(text).to_have_value("Hello {{ first_name }}")
    await page.get_by_role("button", name="Review and send").click()
    await page.get_by_role("button", name="Send to 1 person").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Hello {{ first_name }}")


@pytest.mark.parametrize("width", [1280, 900, 390])
async def test_numbers_of_a_broadcast_do_not_wrap_and_what_failed_is_in_its_bar(
    place: Furnished, new_window: NewWindow, width: int
) -> None:
    body = {"text": "Hello", "audience": {"langs": ["en"]}, "send_at": "2035-01-01T10:00:00Z"}
    job_id = (await place.tenant.client.post("/v1/broadcast", json=body)).json()["job_id"]
    async with place.service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_mailings SET status = 'completed', total = 1000, sent = 993, failed = 7,"
            " finished_at_ms = created_at_ms WHERE job_id = :job_id",
            {"job_id": job_id},
        )
    page = await place.open(new_window, "/broadcasts", scripts=True)
    await page.set_viewport_size({"width": width, "height": 900})
    outcomes = page.locator(".outcomes").first
    await picture(page, f"broadcasts-{width}")

    assert [text.strip() for text in await outcomes.locator("li").all_inner_texts()] == [
        "1,000 of 1,000",
        "Sent 993",
        "Failed 7",
    ]
    for line in await outcomes.locator("li").all():
        box = await line.bounding_box()
        assert box is not None
        assert box["height"] < TWO_LINES
    failed = await outcomes.locator("rect.failed").bounding_box()
    whole = await outcomes.locator("svg").bounding_box()
    assert failed is not None
    assert whole is not None
    assert failed["width"] >= 1
    assert failed["x"] + failed["width"] <= whole["x"] + whole["width"] + 1


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
@pytest.mark.parametrize("path", ["/drips/new", "/schedules/new", "/new-template"])
async def test_a_message_is_previewed_while_it_is_composed(
    place: Furnished, new_window: NewWindow, path: str, scripts: bool
) -> None:
    page = await place.open(new_window, path, scripts=scripts)

    await page.locator('[name="text"]').fill("Hello **you**")
    await page.get_by_label("Format").select_option("markdown")
    await page.get_by_text("Buttons", exact=True).click()
    await page.get_by_text("More buttons").click()
    await page.locator('[name="button_text_9"]').fill("Last")
    await page.locator('[name="button_url_9"]').fill("https://shop.example/")
    if not scripts:
        await page.get_by_role("button", name="Preview").click()

    await expect(page.locator("#preview .mark-bold").first).to_have_text("you")
    await expect(page.locator("#preview .bubble-button").first).to_contain_text("Last")
    await expect(page.locator('[name="button_text_9"]')).to_have_value("Last")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
async def test_steps_of_a_chain_change_places(
    place: Furnished, new_window: NewWindow, scripts: bool
) -> None:
    steps = [{"delay": {"hours": 1}, "message": {"text": text}} for text in ("One", "Two")]
    body = {"name": "Order", "trigger": {"on": "manual"}, "steps": steps}
    made = (await place.tenant.client.post("/v1/drips", json=body)).json()
    page = await place.open(new_window, f"/drips/{made['drip_id']}", scripts=scripts)

    await page.get_by_role("button", name="Move down").click()

    texts = page.locator("#chain .lines")
    await expect(texts).to_have_text(["Two", "One"])
    await picture(page, f"chain-{'with' if scripts else 'without'}-scripts")
