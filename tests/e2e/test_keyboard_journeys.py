"""By the keyboard alone, with scripts and without: a broadcast, an answer to a ticket, an API key.

Nothing is pointed at: Tab, Shift+Tab, Enter, Space, Escape, the arrow keys and what is typed. At every stop
the focus is seen, and a part of a page that is replaced, or a dialog that closes, never takes it away.
"""

import pytest
from playwright.async_api import Locator, Page, expect

from msgsvc_core.channels import ChannelUser, MessageReceived
from msgsvc_devkit import settled
from tests.api.subscribing import subscribing
from tests.e2e.furnished import Furnished
from tests.e2e.keyboard import Keyboard
from tests.e2e.windows import NewWindow

pytestmark = pytest.mark.browser

both_ways = pytest.mark.parametrize(
    "scripts", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["with scripts", "without"]
)


async def at_home(
    place: Furnished, new_window: NewWindow, *, scripts: bool
) -> tuple[Page, Keyboard]:
    """The overview of the project, with the focus where a page begins."""
    page = await place.open(new_window, "", scripts=scripts)
    return page, Keyboard(page)


async def go(page: Page, keys: Keyboard, title: str) -> None:
    """Follows an entry of the navigation."""
    await keys.follow(page.locator("#pages").get_by_role("link", name=title, exact=True))
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)


async def write(place: Furnished, who: str, text: str) -> None:
    """Somebody whom the project knows writes to its bot."""
    user = ChannelUser(f"user-{who}", who, who.lower(), "en")
    update = MessageReceived(update_id=f"{who} {text}", chat_id=f"chat-{who}", user=user, text=text)
    await place.service.inbound.receive("messenger_a", update)


def named(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


async def open_dialog(page: Page, keys: Keyboard, opener: Locator, *, scripts: bool) -> Locator:
    """Opens it and leaves it by Escape, which gives the focus back, and opens it again."""
    dialog = page.get_by_role("dialog")
    await keys.enter(opener)
    await expect(dialog).to_be_visible()
    if scripts:
        # It holds the focus, however far one goes.
        stops = await dialog.locator("a[href], button, input:not([type=hidden]), textarea").count()
        for _ in range(stops + 2):
            inside = await dialog.evaluate(
                "one => one.contains(document.activeElement) || document.activeElement === document.body"
            )
            assert inside, "the focus has left an open dialog"
            await keys.press("Tab")
    await keys.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(opener).to_be_focused()
    await keys.check()
    await keys.press("Enter")
    await expect(dialog).to_be_visible()
    return dialog


@both_ways
async def test_a_broadcast_is_written_sent_and_another_cancelled(
    place: Furnished, new_window: NewWindow, scripts: bool
) -> None:
    page, keys = await at_home(place, new_window, scripts=scripts)
    await go(page, keys, "Broadcasts")
    await keys.follow(page.get_by_role("link", name="New broadcast"))
    text = page.get_by_role("textbox", name="Text", exact=True).first
    await keys.to(text)
    await keys.type("Hello {{ first_name }}")
    if scripts:
        # The preview and the number of people are replaced beside what somebody writes.
        await expect(page.locator("#preview")).to_contain_text("Hello Alex")
        await expect(text).to_be_focused()
        await keys.choose("Subscribers who match these filters")
        await keys.to(page.locator("input[name=langs][value=ru]"))
        await keys.press("Space")
        await expect(page.locator("#reach")).to_contain_text("0 people")
        await keys.check()
        await keys.to(
            page.get_by_role("radio", name="Subscribers who match these filters"), back=True
        )
        await keys.press("ArrowUp")
        await expect(page.locator("#reach")).to_contain_text("1 person")
        await keys.check()
    else:
        await keys.follow(named(page, "Preview"))
        await expect(page.locator("#preview")).to_contain_text("Hello Alex")
    await keys.follow(named(page, "Review and send"))
    await keys.follow(named(page, "Send to 1 person"))
    title = page.get_by_role("heading", level=1)
    await expect(title).to_have_text("Hello {{ first_name }}")
    await settled(place.service)
    await page.reload()
    await expect(page.locator("#progress")).to_contain_text("Completed")

    await keys.follow(page.get_by_role("link", name="Duplicate"))
    await keys.choose("At a set time")
    await keys.to(page.get_by_label("Day and time"))
    await keys.type("01312035")
    await keys.press("Tab")
    await keys.type("1000AM")
    await keys.follow(named(page, "Review and send"))
    await keys.follow(named(page, "Send to 1 person"))
    await expect(page.get_by_text("Scheduled", exact=True).first).to_be_visible()
    dialog = await open_dialog(page, keys, named(page, "Cancel"), scripts=scripts)
    await keys.follow(named(dialog, "Cancel the broadcast"))

    await expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()


@both_ways
async def test_a_ticket_is_read_and_answered(
    place: Furnished, new_window: NewWindow, scripts: bool
) -> None:
    who = "Olga" if scripts else "Boris"
    await subscribing(place.service, place.tenant)(who)
    await write(place, who, "Is my book back?")
    page, keys = await at_home(place, new_window, scripts=scripts)
    await go(page, keys, "Tickets")
    await keys.follow(page.locator("a.ticket", has_text=who))
    answer = page.get_by_role("textbox", name="Answer to the customer")
    await keys.to(answer)
    await keys.type("Yes, come by")
    if scripts:
        await write(place, who, "Hello? Anybody?")
        await expect(page.locator("#talk")).to_contain_text("Hello? Anybody?")
        await expect(answer).to_be_focused()
    await expect(answer).to_have_value("Yes, come by")
    await keys.to(page.get_by_role("combobox", name="Format"))
    await keys.press("ArrowDown")
    await keys.follow(named(page, "Send and wait for reply"))
    await expect(page.locator(".said.agent").last).to_contain_text("Yes, come by")
    await keys.choose("Internal note")
    note = page.get_by_role("textbox", name="Internal note")
    if scripts:
        await expect(note).to_be_focused()
    else:
        await keys.to(note)
    await keys.type("She called as well")
    await keys.follow(named(page, "Save the note"))
    await expect(page.locator(".said.note").last).to_contain_text("She called as well")
    await keys.enter(page.locator("summary", has_text="Snooze"))
    await keys.to(named(page, "For 1 hour"))
    await keys.follow(named(page, "Close"), back=True)

    await expect(named(page, "Reopen")).to_be_visible()


@both_ways
async def test_a_key_is_created_used_and_revoked(
    place: Furnished, new_window: NewWindow, scripts: bool
) -> None:
    name = f"shop {'scripts' if scripts else 'plain'}"
    page, keys = await at_home(place, new_window, scripts=scripts)
    await go(page, keys, "API keys")
    await keys.follow(page.get_by_role("link", name="Create a key").first)
    await keys.to(page.get_by_role("textbox", name="Name"))
    await keys.type(name)
    await keys.choose("Selected scopes")
    await keys.to(page.get_by_role("checkbox", name="messages", exact=True))
    await keys.press("Space")
    await keys.follow(named(page, "Create a key"))
    secret = await page.locator("code.secret").inner_text()
    bearer = {"Authorization": f"Bearer {secret}"}
    assert (await page.request.get(f"{place.url}/v1/project", headers=bearer)).status != 401
    await keys.follow(page.get_by_role("link", name="Back to API keys"))
    row = page.get_by_role("row").filter(has_text=name)
    dialog = await open_dialog(page, keys, named(row, "Revoke"), scripts=scripts)
    await keys.follow(named(dialog, f"Revoke {name}"))
    await expect(page.get_by_role("row").filter(has_text=name)).to_have_count(0)
    refused = await page.request.get(f"{place.url}/v1/project", headers=bearer)

    assert refused.status == 401


async def test_what_is_replaced_under_the_focus_hands_it_on(
    place: Furnished, new_window: NewWindow
) -> None:
    body = {"text": "Hello", "audience": {"all": True}, "send_at": "2035-01-01T10:00:00Z"}
    job_id = (await place.tenant.client.post("/v1/broadcast", json=body)).json()["job_id"]
    async with place.service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_mailings SET status = 'running', total = 9, sent = 4 WHERE job_id = :job_id",
            {"job_id": job_id},
        )
    page = await place.open(new_window, f"/broadcasts/{job_id}", scripts=True)
    keys, progress = Keyboard(page), page.locator("#progress")
    await keys.to(progress.get_by_role("link", name="Sent"))
    await progress.evaluate("part => { part.dataset.seen = 'before'; }")
    await expect(page.locator("#progress[data-seen]")).to_have_count(0)
    await expect(progress.get_by_role("link", name="Sent")).to_be_focused()
    await keys.check()

    # What had the focus is gone: Tab goes on from where it was.
    gone = '<div id="progress"><p>Completed</p></div>'
    await page.route(
        "**/progress", lambda route: route.fulfill(body=gone, content_type="text/html")
    )
    await expect(progress).to_have_text("Completed")
    await expect(progress).to_be_focused()
    await keys.press("Tab")

    assert await progress.evaluate(
        "part => part.compareDocumentPosition(document.activeElement)"
        " & Node.DOCUMENT_POSITION_FOLLOWING"
    )
