"""Buttons that open pages."""

import pytest

from msgsvc_core.channels import Button, Capabilities, OutgoingMessage
from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.button_pages.pages import ButtonPagesRoutes
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_devkit import MemoryCore

MESSAGE = OutgoingMessage(
    "Coming?", buttons=((Button("Map", url="https://a.example"), Button("Yes", data="y")),)
).with_key("msg_1")


async def offered(core: MemoryCore, tx: Tx, message: OutgoingMessage) -> tuple[list[str], str]:
    """The URLs of a message's buttons, and the digest of its pages."""
    pages, channel = core.service.get(ButtonPages), core.channels["messenger_a"]
    linked, digest = await pages.offer(tx, channel, "room-1", message, "en")
    return [b.url or "" for row in linked.buttons for b in row], digest


async def test_each_attempt_to_send_a_message_gets_the_same_addresses(
    core: MemoryCore, tx: Tx
) -> None:
    first, _ = await offered(core, tx, MESSAGE)
    again, _ = await offered(core, tx, MESSAGE)
    other, _ = await offered(core, tx, MESSAGE.with_key("msg_2"))

    assert first == again
    assert first[0] == "https://a.example"
    assert first[1].startswith(f"{core.config.base_url}/b/")
    assert first[1] != other[1]


@pytest.mark.parametrize(("addresses", "is_known"), [(True, True), (False, False)])
async def test_a_chat_that_never_was_is_known_by_its_address_alone(
    core: MemoryCore, tx: Tx, addresses: bool, is_known: bool
) -> None:
    core.channels["messenger_a"].capabilities = Capabilities(buttons="pages", addresses=addresses)
    pages = core.service.get(ButtonPages)
    urls, digest = await offered(core, tx, MESSAGE)
    await pages.set_ref(tx, digest, "7")
    token = urls[1].split("/")[-2]

    if is_known:
        page = await pages.get(tx, core.channels, token, 1)
        assert (page.user_id, page.button.text, page.message_ref) == ("room-1", "Yes", "7")
    else:
        with pytest.raises(NotFound):
            await pages.get(tx, core.channels, token, 1)


def test_a_page_is_opened_and_pressed_at_one_address(core: MemoryCore) -> None:
    async def press(_channel: str, _press: ButtonPressed) -> list[OutgoingMessage] | None:
        return None

    routes = ButtonPagesRoutes(
        db=core.db,
        texts=core.texts,
        projects=core.projects,
        channels=core.channels,
        pages=core.service.get(ButtonPages),
        press=press,
    ).routes()

    assert {"GET", "POST"} <= set(getattr(routes[-1], "methods", ()))
