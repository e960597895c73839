"""What people do from page to page, in Chromium: a first owner up to the first sign-in, a failed webhook
that is mended, a colleague who joins and sees what an agent may.

`MSGSVC_TEST_SCREENS=1` leaves pictures of what is seen in build/screens.
"""

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from msgsvc_devkit.webhooks import WebhookReceiver
from tests.e2e.furnished import Furnished
from tests.e2e.windows import NewWindow, picture, someone_new
from tests.ports import free_ports
from tests.process import Deployment

pytestmark = pytest.mark.browser

PASSWORD = "a winter evening by the sea"

CONFIG = """\
base_url = "http://127.0.0.1:{port}"
plugins = ["sandbox", "auth", "otp", "forms", "helpdesk", "webhooks", "billing", "dashboard"]
[channels.messenger_a]
plugin = "sandbox"
"""

#: What no agent has to do with: the entries that lead there, and their addresses in a project.
NOT_FOR_AGENTS = {
    "Webhooks": "/webhooks",
    "API keys": "/keys",
    "Billing": "/billing",
    "Team": "/members",
}


async def at_home(place: Furnished, new_window: NewWindow) -> Page:
    """The overview, as the project's owner has it."""
    page = await new_window()
    await place.enter(page.context, place.owner)
    await page.goto(f"{place.url}{place.owner.url('')}")
    return page


def entry(page: Page, title: str) -> Locator:
    """An entry of the navigation."""
    return page.locator("#pages").get_by_role("link", name=title, exact=True)


async def press(page: Page, button: str) -> None:
    await page.get_by_role("button", name=button, exact=True).click()


async def set_password(page: Page) -> None:
    """Goes where the page leads whoever came by a link."""
    await page.get_by_role("link", name="Set a password").click()
    await page.get_by_label("New password", exact=True).fill(PASSWORD)
    await page.get_by_label("Repeat the new password").fill(PASSWORD)
    await press(page, "Set a password")
    await expect(page.get_by_role("status")).to_have_text("Your password is set.")


async def make_key(page: Page) -> str:
    """Makes an API key from the first steps, and comes back to them."""
    await (
        page.get_by_role("region", name="First steps").get_by_role("link", name="API keys").click()
    )
    await page.get_by_role("link", name="Create a key").first.click()
    await page.get_by_label("Name").fill("site")
    await press(page, "Create a key")
    secret = await page.locator("code.secret").inner_text()
    await page.get_by_role("link", name="Back to API keys").click()
    await entry(page, "Overview").click()
    return secret


async def say_yes(page: Page, name: str) -> None:
    """Opens the bot from the page in another tab, as somebody new, and presses Yes there."""
    async with page.context.expect_page() as opened:
        await page.get_by_role("link", name=re.compile("^Open ")).click()
    phone = await opened.value
    await someone_new(phone, name)
    await press(phone, "Yes")


async def test_from_the_first_account_to_the_first_person_who_signs_in(
    tmp_path: Path, new_window: NewWindow
) -> None:
    deployment, port = Deployment(tmp_path), free_ports()
    deployment.configure(CONFIG.format(port=port), port=port)
    printed = deployment.run("account", "create", "ann@shop.example", "--name", "Ann Lee")
    link = re.search(r"http\S+", printed)
    assert link
    page = await new_window()
    with deployment.serving() as server:
        await page.goto(link[0])
        await press(page, "Sign in")
        await expect(page.get_by_role("heading", name="You have no projects yet")).to_be_visible()
        await picture(page, "journey-owner-1-signed-in")
        await set_password(page)
        await entry(page, "Projects").click()
        await press(page, "Create a project")
        await page.get_by_label("Name").fill("Pinewood Library")
        await press(page, "Create")
        steps = page.get_by_role("region", name="First steps")
        await expect(steps).to_be_visible()
        await picture(page, "journey-owner-2-first-steps")
        bearer = {"Authorization": f"Bearer {await make_key(page)}"}
        answer = await page.request.get(f"{server.url}/v1/project", headers=bearer)
        await steps.get_by_role("link", name="Try it").click()
        await press(page, "Try it")
        await say_yes(page, "Olga")
        await expect(page.locator("#state")).to_contain_text("Olga confirmed")
        # Nothing more will happen, so nothing asks.
        await expect(page.locator("#state[hx-get]")).to_have_count(0)
        await picture(page, "journey-owner-3-yes")
        await press(page, "Exchange the code")
        await expect(page.locator("pre.code")).to_contain_text('"first_name": "Olga"')
        await picture(page, "journey-owner-4-answer")
        await page.get_by_role("link", name="View subscriber").click()
        await expect(page.get_by_role("heading", name="Olga")).to_be_visible()
        await entry(page, "Overview").click()
        # All but a message, which nobody has written.
        await expect(steps.locator("li:not(.done)")).to_contain_text("Send a message")
        await picture(page, "journey-owner-5-overview")

    assert answer.status == 200


async def test_a_failed_webhook_is_found_in_its_journal_and_delivered_again(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await at_home(place, new_window)
    async with WebhookReceiver() as receiver:
        await entry(page, "Webhooks").click()
        await page.get_by_role("link", name="Add a webhook").click()
        await page.get_by_label("URL").fill(receiver.url)
        await press(page, "Add a webhook")
        receiver.secret = await page.locator("code.secret").inner_text()
        await page.get_by_role("link", name="Back to the webhook").click()
        journal = page.locator("#deliveries")
        await expect(journal).to_contain_text("No deliveries yet")
        receiver.fail(404)
        body = {"subscriber_id": place.ids["subscriber_id"], "text": "Your book is here"}
        await place.tenant.client.post("/v1/send", json=body)
        failed = journal.get_by_role("row").filter(has_text="Failed")
        await expect(failed).to_contain_text("The receiver answered 404")
        await picture(page, "journey-webhook-1-journal")
        await failed.get_by_role("link", name="delivery.success").click()
        state = page.locator("#state")
        await expect(state).to_contain_text("404")
        await picture(page, "journey-webhook-2-failed")
        # The page is there before the receiver has answered.
        receiver.be_slow(2)
        await press(page, "Redeliver")
        await expect(page.get_by_role("status")).to_have_text("Redelivering.")
        await page.evaluate("document.title = 'as it was loaded'")
        await expect(state.locator(".badge").first).to_have_text("Delivered")
        await expect(state).to_contain_text("The receiver answered 200, after 2 attempts")
        await picture(page, "journey-webhook-3-delivered")
        await expect(page).to_have_title("as it was loaded")
        # Nothing more will happen, so nothing asks.
        await expect(page.locator("#state[hx-get]")).to_have_count(0)
        delivery = await receiver.next("delivery.success")

    assert [one.status for one in receiver.tries(delivery.delivery_id)] == [404, 200]


async def test_an_invited_agent_sees_what_an_agent_may_and_nothing_else(
    place: Furnished, new_window: NewWindow
) -> None:
    owner, agent = await at_home(place, new_window), await new_window()
    await entry(owner, "Team").click()
    await picture(owner, "journey-agent-1-team")
    await press(owner, "Invite a member")
    await owner.get_by_label("Name").fill("Boris")
    await owner.get_by_label("Email").fill("boris@pinewood.example")
    await press(owner, "Create an invitation")
    await picture(owner, "journey-agent-2-invitation")

    await agent.goto(await owner.get_by_label("Link").input_value())
    await picture(agent, "journey-agent-3-join")
    await agent.get_by_label("Choose a password").fill(PASSWORD)
    await press(agent, "Join")
    await expect(agent.get_by_role("heading", name="Overview")).to_be_visible()
    await picture(agent, "journey-agent-4-overview")
    for title in NOT_FOR_AGENTS:
        await expect(entry(owner, title)).to_have_count(1)
        await expect(entry(agent, title)).to_have_count(0)
    await entry(agent, "Subscribers").click()
    await expect(agent.get_by_role("link", name="Ann").first).to_be_visible()
    await entry(agent, "Tickets").click()
    await agent.locator("a.ticket").first.click()
    await expect(agent.get_by_label("Answer to the customer")).to_be_visible()
    await picture(agent, "journey-agent-5-inbox")
    refused = {}
    for path in NOT_FOR_AGENTS.values():
        answer = await agent.goto(f"{place.url}{place.owner.url(path)}")
        refused[path] = answer and answer.status
    await picture(agent, "journey-agent-6-refused")

    assert set(refused.values()) == {403}, refused


async def test_the_search_is_used_by_keys_alone_and_remembers_what_was_opened(
    place: Furnished, new_window: NewWindow
) -> None:
    page = await at_home(place, new_window)
    box = page.get_by_role("combobox", name="Search")
    options = page.get_by_role("option")
    await page.keyboard.press("Control+k")
    await expect(box).to_be_focused()
    await box.press_sequentially("web")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowUp")
    chosen = await box.get_attribute("aria-activedescendant")
    await expect(options.last).to_have_attribute("id", chosen or "none")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Webhooks")
    # Its scripts listen to the keys.
    await page.wait_for_load_state("load")

    await page.keyboard.press("Control+k")
    await expect(options).to_have_text([re.compile("Webhooks")])
    message_id = place.ids["message_id"]
    await box.fill(message_id)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/messages/{message_id}$"))

    await page.keyboard.press("Control+k")
    await page.keyboard.press("Escape")
    await expect(box).to_be_hidden()
    # The form is not sent: the session is that of all tests here.
    await page.evaluate(
        "document.querySelector('form[action$=\"/sign-out\"]').dispatchEvent(new Event('submit'))"
    )
    kept = await page.evaluate(
        "Object.keys(sessionStorage).filter((key) => key.startsWith('recent:'))"
    )
    assert kept == []
