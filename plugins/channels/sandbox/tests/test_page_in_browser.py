"""A person's page in real Chromium."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from playwright.async_api import Browser, Page, expect

from msgsvc_core.channels import Button, OutgoingMessage
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_devkit.work import PATIENCE_S
from msgsvc_sandbox.service import Messenger

pytestmark = pytest.mark.browser

# Milliseconds: five seconds by default, which a busy machine may take.
expect.set_options(timeout=PATIENCE_S * 1000)

#: Works as HTML, as an attribute and as an address, wherever a page would be careless.
EVIL = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


#: A picture of one pixel.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def backend(databases: dict[str, Any]) -> Any:
    """One database is enough here: a page does not see which it is."""
    return databases["sqlite"]


@pytest.fixture
async def base_url(service: Service) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(service.app, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    service.get(Messenger).close()  # the page may still wait for news
    await serving


@pytest.fixture
async def page(browser: Browser, base_url: str) -> AsyncIterator[Page]:
    """A desktop window. Errors, and requests to other hosts, fail the test."""
    wrong: list[str] = []
    context = await browser.new_context(
        base_url=base_url, viewport={"width": 1280, "height": 800}, locale="en"
    )
    page = await context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.append(asked.url) if _foreign(asked.url) else None)
    yield page
    await context.close()
    assert wrong == []


def _foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "blob:", "data:"))


async def test_a_pasted_link_leads_to_a_chat_that_lives(
    service: Service, page: Page, anna: SandboxPerson
) -> None:
    await page.goto(f"/sandbox/p/{anna.person_id}")
    await page.get_by_role("button", name="Open a link or scan").click()
    await page.get_by_label("Link", exact=True).fill("https://shop.example")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text(
        "This is not a start link of this messenger."
    )

    await page.get_by_label("Link", exact=True).fill(
        service.channels["messenger_a"].deep_link("echo_1")
    )
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Yes", exact=True).click()

    await expect(page.get_by_role("log")).to_contain_text("Thanks, Anna")
    await expect(page.get_by_role("log")).to_contain_text("edited")
    await expect(page.get_by_text("Noted")).to_be_visible()
    await expect(page.get_by_role("button", name="Yes", exact=True)).to_have_count(0)


async def test_a_written_text_is_answered_without_reload(page: Page, anna: SandboxPerson) -> None:
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")
    await page.get_by_role("button", name="Start", exact=True).click()

    await page.get_by_label("Message", exact=True).fill("two flat whites")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("log")).to_contain_text("You said: two flat whites")


@pytest.mark.parametrize("text_format", ["plain", "markdown", "html"])
async def test_nothing_that_a_bot_sends_can_run(
    service: Service, page: Page, sandbox: Sandbox, text_format: str
) -> None:
    person = await sandbox.person(EVIL[:64])
    await person.start("messenger_a")
    await settled(service)
    link = "[x](javascript:document.title='hacked')<a href=\"javascript:document.title='hacked'\">y"
    buttons = ((Button(EVIL[:64], data="x"),),)
    message = OutgoingMessage(f"{EVIL} {link} shown", format=text_format, buttons=buttons)
    await service.channels["messenger_a"].send(person.person_id, message)

    await page.goto(f"/sandbox/p/{person.person_id}#messenger_a")
    await expect(page.get_by_role("log")).to_contain_text("shown")

    assert "hacked" not in (await page.title()).replace(EVIL[:64], "")
    assert await page.locator("#log img, #log script, #log a").count() == 0


async def test_a_start_link_in_a_message_opens_here(
    service: Service, page: Page, anna: SandboxPerson
) -> None:
    await anna.start("messenger_a")
    link = service.channels["messenger_b"].deep_link("echo_1")
    await service.channels["messenger_a"].send(anna.person_id, OutgoingMessage(f"Try {link}"))
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")

    # The preview in the list of chats may name it too.
    await page.get_by_role("link", name=link, exact=True).click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Messenger B")
    await expect(page.get_by_role("button", name="Yes", exact=True)).to_be_visible()


async def test_a_switch_in_the_page_makes_the_channel_fail(
    service: Service, page: Page, anna: SandboxPerson
) -> None:
    await anna.start("messenger_a")
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")
    await page.get_by_role("button", name="How this messenger behaves").click()
    await page.get_by_label("Answers 429").check()
    await page.get_by_label("Retry after, s").fill("42")
    await page.get_by_role("button", name="Save").click()

    await expect(page.locator("#chat-status")).to_have_text("Answers 429 (42 s)")
    health = await service.get(Messenger).fault("messenger_a")
    assert (health.reason, health.retry_after_s) == ("rate_limited", 42)


async def test_a_person_blocks_a_bot_and_lets_it_in_again(page: Page, anna: SandboxPerson) -> None:
    await anna.start("messenger_a")
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Block this bot").click()
    await expect(page.get_by_text("You have blocked this bot.")).to_be_visible()

    await page.get_by_role("button", name="Unblock", exact=True).click()

    await expect(page.get_by_label("Message", exact=True)).to_be_visible()


async def test_a_phone_shows_the_chats_or_one_of_them(page: Page, anna: SandboxPerson) -> None:
    await anna.start("messenger_a", "echo_1")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"/sandbox/p/{anna.person_id}")
    await expect(page.get_by_role("log")).to_be_hidden()

    await page.get_by_role("link", name="Corner Coffee").click()
    await expect(page.get_by_role("button", name="Yes", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Open a link or scan")).to_be_hidden()

    await page.get_by_role("link", name="Back to the chats").click()
    await expect(page.get_by_role("button", name="Open a link or scan")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_a_profile_change_takes_effect_in_the_new_language(
    page: Page, anna: SandboxPerson
) -> None:
    await page.goto(f"/sandbox/p/{anna.person_id}")
    await page.get_by_role("button", name="Anna: switch person or edit").click()
    await page.get_by_role("button", name="Edit this person").click()
    await page.get_by_label("First name").fill("Анна")
    await page.locator("#profile-dialog").get_by_label("Русский").check()
    await page.get_by_role("button", name="Save").click()

    await expect(page.get_by_role("button", name="Ссылка или QR-код")).to_be_visible()
    await expect(page).to_have_title("Анна · Мессенджер-песочница")


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_command_is_sent_from_the_menu(page: Page, anna: SandboxPerson, width: int) -> None:
    await anna.start("messenger_a")
    await page.set_viewport_size({"width": width, "height": 800})
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")

    await page.get_by_role("button", name="Commands").click()
    await page.get_by_role("button", name="/lang").click()
    await page.get_by_role("button", name="Русский", exact=True).click()

    await expect(page.get_by_role("log")).to_contain_text(
        "Теперь сообщения будут приходить на русском."
    )
    await expect(page.get_by_role("button", name="/lang")).to_be_hidden()


async def test_a_file_is_attached_with_what_was_written_and_shown(
    service: Service, page: Page, anna: SandboxPerson
) -> None:
    await anna.start("messenger_a")
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")
    await page.get_by_label("Message", exact=True).fill("My cup")
    await page.locator("#attached").set_input_files(
        {"name": "cup.png", "mimeType": "image/png", "buffer": PICTURE}
    )

    shown = page.locator("#messages img")
    await expect(shown).to_be_visible()
    await expect(shown).to_have_js_property("naturalWidth", 1)
    await expect(page.get_by_role("log")).to_contain_text("You said: My cup")
    await page.locator("#attached").set_input_files(
        {"name": "cup.png", "mimeType": "image/png", "buffer": EVIL.encode()}
    )
    await expect(page.locator("#messages .file")).to_have_text("cup.png")


async def test_a_page_by_another_name_is_not_attached(page: Page, anna: SandboxPerson) -> None:
    await anna.start("messenger_a")
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")
    await expect(page.get_by_label("Message", exact=True)).to_be_visible()

    await page.locator("#attached").set_input_files(
        {"name": "cup.png", "mimeType": "image/png", "buffer": b"<!doctype html><script>"}
    )

    await expect(page.get_by_text("This file is empty, too large")).to_be_visible()


async def test_a_message_is_answered_and_what_was_written_is_changed(
    page: Page, anna: SandboxPerson
) -> None:
    await anna.start("messenger_a", "echo_1")
    await page.goto(f"/sandbox/p/{anna.person_id}#messenger_a")
    await page.get_by_role("button", name="Reply to this message").click()
    await expect(page.locator("#about")).to_contain_text("Replying to: Is it you?")
    await page.get_by_label("Message", exact=True).fill("yes it si")
    await page.keyboard.press("Enter")
    await expect(page.locator("#messages .quote:visible")).to_have_text("Is it you?")

    await page.set_viewport_size({"width": 1280, "height": 420})
    await page.get_by_role("button", name="Edit this message").click()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("yes it si")
    # What is hidden in the log must not make the page longer than its window.
    assert await page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
    await page.get_by_label("Message", exact=True).fill("yes it is")
    await page.keyboard.press("Enter")

    mine = page.locator(".message[data-author=person]")
    await expect(mine).to_contain_text("yes it is")
    await expect(mine).to_contain_text("edited")
    await expect(page.locator("#about")).to_be_hidden()
