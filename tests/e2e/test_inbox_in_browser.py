"""A ticket that is written in while its page is open is answered there, and a form is built: in Chromium."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from msgsvc_core.channels import ChannelUser, MessageReceived, Started
from msgsvc_devkit.dashboard import visitor
from tests.e2e.furnished import Furnished, furnished
from tests.e2e.windows import NewWindow, picture

pytestmark = pytest.mark.browser


@asynccontextmanager
async def opened(folder: Path, new_window: NewWindow) -> AsyncIterator[tuple[Furnished, Page]]:
    """A service, and a window in which its owner is signed in."""
    async with furnished(folder) as made:
        page = await new_window()
        await made.enter(page.context, made.owner)
        yield made, page


OLGA = ChannelUser("olga", "Olga", None, "en")


async def come(made: Furnished) -> None:
    """Olga opens a link of the project."""
    answer = await made.tenant.client.post("/v1/subscribers/links", json={})
    payload = answer.json()["links"]["messenger_a"].partition("?start=")[2]
    update = Started(update_id="olga comes", chat_id="olga", user=OLGA, payload=payload)
    await made.service.inbound.receive("messenger_a", update)


async def write(made: Furnished, text: str) -> None:
    """Olga writes to the bot."""
    update = MessageReceived(update_id=f"olga {text}", chat_id="olga", user=OLGA, text=text)
    await made.service.inbound.receive("messenger_a", update)


async def test_what_a_customer_writes_appears_and_what_an_agent_is_writing_stays(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with opened(tmp_path, new_window) as (made, page):
        project = f"{made.url}/dashboard/projects/{made.tenant.project.project_id}"
        await page.goto(f"{project}/tickets")
        await come(made)
        await write(made, "Is my book back?")
        await expect(page.locator("#inbox-news")).to_contain_text("Olga: Is my book back?")
        await page.locator("a.ticket", has_text="Is my book back?").click()
        answer = page.get_by_label("Answer to the customer")
        await answer.fill("Yes, it")
        await write(made, "Hello? Anybody?")

        await expect(page.locator("#talk")).to_contain_text("Hello? Anybody?")
        await expect(page.locator("#talk-news")).to_have_text("Hello? Anybody?")
        await expect(answer).to_have_value("Yes, it")
        await expect(answer).to_be_focused()

        await page.get_by_role("button", name="Assign to me").click()
        await expect(page.get_by_role("button", name="Assign to me")).to_have_count(0)
        await expect(answer).to_have_value("Yes, it")
        await answer.press_sequentially(" is here.")
        await page.locator(".other-ways > summary").press("Enter")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Send and close")).to_be_hidden()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Send and close").click()
        await expect(page.locator("#talk")).to_contain_text("Yes, it is here.")
        await expect(page.get_by_role("button", name="Reopen")).to_be_visible()


PASTE = """(box) => {
  const files = new DataTransfer();
  files.items.add(new File(["1, 2, 3"], "shelves.csv", { type: "text/csv" }));
  box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files, bubbles: true, cancelable: true }));
}"""


async def test_a_reply_is_written_by_keyboard_with_a_canned_answer_and_a_pasted_file(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with opened(tmp_path, new_window) as (made, page):
        await page.goto(made.url + made.owner.url(f"/tickets/{made.ids['ticket_id']}"))
        answer = page.get_by_label("Answer to the customer")
        await answer.focus()
        await page.keyboard.press("/")
        await expect(page.get_by_label("Canned answer")).to_be_focused()
        await expect(answer).to_have_value("")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Enter")
        await expect(answer).not_to_have_value("")
        await expect(answer).to_be_focused()
        said = await answer.input_value()
        await answer.evaluate(PASTE)
        await page.keyboard.press("Control+Enter")

        await expect(page.locator(".said.agent")).to_contain_text(said)
        await expect(page.locator(".said.agent")).to_contain_text("shelves.csv")
        await page.get_by_role("radio", name="Internal note").check()
        note = page.get_by_label("Internal note, not visible to the customer")
        await expect(note).to_be_focused()
        await expect(answer).to_be_hidden()
        await note.fill("Asked twice already")
        await page.keyboard.press("Control+Enter")
        await expect(page.locator(".said.note")).to_contain_text("Asked twice already")


async def test_two_agents_see_each_others_replies_and_never_answer_twice_unknowingly(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with furnished(tmp_path) as made:
        project_id = made.tenant.project.project_id
        colleague = await visitor(made.service, project_id, "admin")
        ticket = made.url + made.owner.url(f"/tickets/{made.ids['ticket_id']}")
        pages = [await new_window(), await new_window()]
        for page, who in zip(pages, (made.owner, colleague), strict=True):
            await made.enter(page.context, who)
            await page.goto(ticket)
        first, second = pages
        answer = second.get_by_label("Answer to the customer")
        await answer.fill("It is in the mail")
        # The second has not heard of it yet when they press Send.
        await second.route("**/conversation*", lambda route: route.abort())
        await first.get_by_label("Answer to the customer").fill("It is at the door")
        await first.get_by_role("button", name="Send and wait for reply").click()
        await expect(first.locator(".said.agent")).to_have_count(1)
        await second.get_by_role("button", name="Send and wait for reply").click()

        await expect(
            second.get_by_role("alert").filter(has_text="replied meanwhile")
        ).to_be_visible()
        await expect(second.locator(".said.agent")).to_contain_text("It is at the door")
        await expect(answer).to_have_value("It is in the mail")
        await second.get_by_role("button", name="Send and wait for reply").click()
        await expect(second.locator(".said.agent")).to_have_count(2)
        await expect(first.locator(".said.agent")).to_have_count(2)
        await colleague.client.aclose()


async def test_a_form_is_built_in_place_with_its_preview(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with opened(tmp_path, new_window) as (made, page):
        forms = f"{made.url}/dashboard/projects/{made.tenant.project.project_id}/forms"
        await page.goto(f"{forms}/new")
        await page.get_by_label("Title, English").fill("Order a cake")
        await page.get_by_label("Slug").fill("cake")
        await page.get_by_label("Add a question").select_option("choice")
        await page.get_by_role("button", name="Add", exact=True).click()
        second = page.get_by_role("group", name="Question 2")
        await second.get_by_label("Question, English").fill("Which one?")
        await second.get_by_label("Options").fill("apple\nplum | Plum cake")
        await second.get_by_role("button", name="Move up").click()

        first = page.get_by_role("group", name="Question 1")
        await expect(first.get_by_label("Question, English")).to_have_value("Which one?")
        preview = page.get_by_role("complementary", name="Preview")
        await expect(preview).to_contain_text("Order a cake")
        await expect(preview).to_contain_text("Plum cake")
        assert page.url == f"{forms}/new"

        await (
            page.get_by_role("group", name="Question 2")
            .get_by_label("Question, English")
            .fill("When?")
        )
        await page.get_by_role("button", name="Create the form").click()
        await expect(page.get_by_role("heading", name="Order a cake")).to_be_visible()
        await expect(page.get_by_role("link", name="/f/frm_")).to_be_visible()


async def test_two_agents_see_each_other_in_a_ticket_and_in_the_list(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with furnished(tmp_path) as made:
        colleague = await visitor(made.service, made.tenant.project.project_id, "admin")
        at = f"/tickets/{made.ids['ticket_id']}"
        pages = [await new_window(), await new_window()]
        for page, who in zip(pages, (made.owner, colleague), strict=True):
            await made.enter(page.context, who)
        first, second = pages
        await first.goto(made.url + made.owner.url("/tickets"))
        await second.goto(made.url + made.owner.url(at))
        await expect(first.locator(".viewed")).to_have_count(1)
        await first.goto(made.url + made.owner.url(at))

        await expect(first.locator("#present")).to_contain_text("is looking at this ticket")
        await second.get_by_label("Answer to the customer").press_sequentially("It is")
        await expect(first.locator("#present")).to_contain_text("is writing…")
        await picture(first, "ticket-presence")
        await expect(second.locator("#present")).to_contain_text("is looking at this ticket")
        await colleague.client.aclose()


async def test_tickets_are_worked_on_by_single_keys_but_never_while_somebody_writes(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with opened(tmp_path, new_window) as (made, page):
        await page.goto(made.url + made.owner.url("/tickets"))
        tickets = page.locator("a.ticket")
        await page.keyboard.press("j")
        await expect(tickets.first).to_be_focused()
        await page.keyboard.press("j")
        await expect(tickets.nth(1)).to_be_focused()
        await page.keyboard.press("k")
        await expect(tickets.first).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator(".desk.is-ticket")).to_be_visible()
        number = await page.locator("h1").inner_text()
        await page.keyboard.press("j")
        await expect(page.locator("h1")).not_to_have_text(number)

        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        await picture(page, "ticket-keys")
        await page.keyboard.press("e")
        await page.keyboard.press("Escape")
        await expect(page.locator("#keys")).to_be_hidden()
        await page.keyboard.press("r")
        answer = page.get_by_label("Answer to the customer")
        await expect(answer).to_be_focused()
        await page.keyboard.type("ease")
        await expect(answer).to_have_value("ease")
        await page.locator("h1").click()
        await page.keyboard.press("n")
        note = page.get_by_label("Internal note, not visible to the customer")
        await expect(note).to_be_focused()
        await page.locator("h1").click()
        await page.keyboard.press("s")
        await expect(page.get_by_role("button", name="For 1 hour")).to_be_focused()
        await page.keyboard.press("a")
        await expect(page.get_by_role("button", name="Assign to me")).to_have_count(0)

        await page.get_by_role("button", name="Keyboard shortcuts").click()
        await page.get_by_role("button", name="Switch single keys off").click()
        await expect(page.get_by_role("heading", name="Helpdesk settings")).to_be_visible()
        await page.goto(made.url + made.owner.url(f"/tickets/{made.ids['ticket_id']}"))
        await page.keyboard.press("e")
        await page.keyboard.press("?")
        await expect(page.locator("#keys")).to_be_hidden()
        await page.get_by_role("button", name="Keyboard shortcuts").click()
        await page.get_by_role("button", name="Switch single keys on").click()
        await page.goto(made.url + made.owner.url(f"/tickets/{made.ids['ticket_id']}"))
        await page.keyboard.press("e")
        await expect(page.get_by_role("button", name="Reopen")).to_be_visible()


async def test_assignee_and_priority_are_saved_as_they_are_chosen_and_the_page_says_so(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with opened(tmp_path, new_window) as (made, page):
        await page.goto(made.url + made.owner.url(f"/tickets/{made.ids['ticket_id']}"))
        about = page.get_by_role("complementary", name="About this ticket")
        said = page.locator("#saved")
        await page.get_by_label("Answer to the customer").fill("Yes, it")
        await expect(about.get_by_role("button", name="Assign", exact=True)).to_be_hidden()
        priority = page.get_by_label("Priority").and_(page.locator("#f-priority"))
        await priority.focus()
        await page.keyboard.type("U")
        await expect(said).to_have_text("Saved. Priority: Urgent")
        await expect(priority).to_be_focused()
        await expect(page.locator("#marks")).to_contain_text("Urgent")
        assignee = page.locator("#f-assignee_id")
        await assignee.select_option(index=1)
        await expect(said).to_contain_text("Saved. Assignee: ")
        await page.route("**/priority*", lambda route: route.abort())
        await priority.select_option("low")

        await expect(said).to_have_text("Not saved. Try again.")
        await expect(priority).to_have_value("urgent")
        await expect(page.get_by_label("Answer to the customer")).to_have_value("Yes, it")


async def test_a_ticket_is_opened_beside_a_list_that_stays_where_it_is(
    new_window: NewWindow, tmp_path: Path
) -> None:
    async with opened(tmp_path, new_window) as (made, page):
        for number in range(20):
            body = {"channel": "virtual", "text": f"Question {number}"}
            answer = await made.tenant.client.post("/v1/tickets", json=body)
            assert answer.status_code == 201, answer.text
        await page.set_viewport_size({"width": 1280, "height": 800})
        await page.goto(made.url + made.owner.url("/tickets"))
        link = page.locator("a.ticket", has_text="Question 5")
        await link.scroll_into_view_if_needed()
        before = await link.bounding_box()
        await link.click()
        await expect(page.locator(".desk.is-ticket")).to_be_visible()

        await expect(page.locator("#ticket-tabs")).to_be_visible()
        assert await link.bounding_box() == before
