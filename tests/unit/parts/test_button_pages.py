"""Buttons that open pages: rules built from fakes."""

from typing import Any

import pytest

from msgsvc_core.channels import Button, Capabilities, OutgoingMessage
from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.button_pages.pages import ButtonPagesRoutes
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.kernel.errors import NotFound
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import FakeTx

MESSAGE = OutgoingMessage(
    "Coming?", buttons=((Button("Map", url="https://a.example"), Button("Yes", data="y")),)
).with_key("msg_1")


@pytest.fixture
def core() -> FakeContext:
    return plugin_context()


def pages_of(core: FakeContext) -> ButtonPages:
    return ButtonPages(
        clock=core.clock, secrets=core.secrets, base_url="https://msgsvc.test/", days=2
    )


async def offered(core: FakeContext, message: OutgoingMessage) -> tuple[list[str], dict[str, Any]]:
    """The URLs of a message's buttons, and what was stored of them."""
    tx = FakeTx(answers=[1])
    channel = core.channels.recording("messenger_a")
    linked, _ = await pages_of(core).offer(tx, channel, "room-1", message, "en")
    return [b.url or "" for row in linked.buttons for b in row], dict(tx.statements[0][1])


async def test_each_attempt_to_send_a_message_gets_the_same_addresses(core: FakeContext) -> None:
    first, _ = await offered(core, MESSAGE)
    again, _ = await offered(core, MESSAGE)
    other, _ = await offered(core, MESSAGE.with_key("msg_2"))

    assert first == again
    assert first[0] == "https://a.example"
    assert first[1].startswith("https://msgsvc.test/b/")
    assert first[1] != other[1]


@pytest.mark.parametrize(("addresses", "is_known"), [(True, True), (False, False)])
async def test_a_chat_that_never_was_is_known_by_its_address_alone(
    core: FakeContext, addresses: bool, is_known: bool
) -> None:
    core.channels["messenger_a"].capabilities = Capabilities(buttons="pages", addresses=addresses)
    urls, stored = await offered(core, MESSAGE)
    row = {"channel": "messenger_a", "message_ref": "7", **stored}
    token = urls[1].split("/")[-2]
    tx = FakeTx(replies={"FROM core_button_pages": [row], "FROM core_chats": []})

    if is_known:
        page = await pages_of(core).get(tx, core.channels, token, 1)
        assert (page.user_id, page.button.text, page.message_ref) == ("room-1", "Yes", "7")
    else:
        with pytest.raises(NotFound):
            await pages_of(core).get(tx, core.channels, token, 1)


def test_a_page_is_opened_and_pressed_at_one_address(core: FakeContext) -> None:
    async def press(_channel: str, _press: ButtonPressed) -> list[OutgoingMessage] | None:
        return None

    routes = ButtonPagesRoutes(
        db=core.db,
        texts=core.texts,
        projects=core.projects,
        channels=core.channels,
        pages=pages_of(core),
        press=press,
    ).routes()

    assert {"GET", "POST"} <= set(getattr(routes[-1], "methods", ()))
