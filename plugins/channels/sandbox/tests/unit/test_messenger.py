"""What people do: it is stored first, and then told to the bot."""

import pytest

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    MessageEdited,
    MessageReceived,
    OutgoingMessage,
    Started,
    Update,
)
from msgsvc_core.content.outgoing import Button
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.models import OpenLink
from msgsvc_sandbox.service import Messenger

Received = list[tuple[str, Update]]


async def test_a_start_link_opens_the_chat_and_starts_the_bot(
    messenger: Messenger, received: Received
) -> None:
    link = OpenLink(link="http://localhost:8000/sandbox/open/shop?start=form_order")
    opened = await messenger.open("per_boris", link)

    [(channel, update)] = received
    assert isinstance(update, Started)
    assert (opened.channel, channel, update.payload) == ("shop", "shop", "form_order")
    assert (update.user.first_name, update.chat_id) == ("Boris", "per_boris")
    state = await messenger.state("per_boris")
    assert [chat.channel for chat in state.chats] == ["shop"]
    assert [message.kind for message in state.messages] == ["start"]


@pytest.mark.parametrize(
    "link",
    [
        OpenLink(),
        OpenLink(link="https://shop.example/sandbox/open/shop", channel="shop"),
        OpenLink(link="https://shop.example/"),
        OpenLink.model_construct(link=None, channel="shop", payload="no payload"),
    ],
)
async def test_what_is_no_start_link_starts_nothing(
    messenger: Messenger, received: Received, link: OpenLink
) -> None:
    with pytest.raises(ValidationFailed):
        await messenger.open("per_anna", link)

    assert received == []


@pytest.mark.parametrize("channel", ["other", "unknown"])
async def test_only_bots_of_this_messenger_are_found_here(
    messenger: Messenger, channel: str
) -> None:
    with pytest.raises(NotFound, match="no bot"):
        await messenger.open("per_anna", OpenLink(channel=channel))
    with pytest.raises(NotFound, match="no bot"):
        await messenger.open_mini_app("per_anna", channel)


@pytest.mark.parametrize(
    ("person_id", "why"), [("per_boris", "not started"), ("per_anna", "has blocked")]
)
async def test_a_person_writes_to_bots_that_they_have_started(
    messenger: Messenger, received: Received, person_id: str, why: str
) -> None:
    await messenger.set_blocked("per_anna", "shop", True)
    received.clear()
    with pytest.raises(Conflict, match=why):
        await messenger.send_text(person_id, "shop", "Hello")

    assert received == []
    assert (await messenger.state(person_id)).messages == []


async def test_a_bot_is_told_what_a_message_answers(
    messenger: Messenger, received: Received, asked: str
) -> None:
    sent = await messenger.send_text("per_anna", "shop", "Two", reply_to=asked)

    [(_, update)] = received
    assert isinstance(update, MessageReceived)
    assert (update.text, update.message_ref, update.reply_to) == ("Two", sent.ref, asked)
    with pytest.raises(NotFound, match="no such message"):
        await messenger.send_text("per_anna", "shop", "Two", reply_to="77")


async def test_people_change_what_they_wrote_themselves(
    messenger: Messenger, received: Received, asked: str
) -> None:
    await messenger.open("per_anna", OpenLink(channel="shop"))
    said = await messenger.send_text("per_anna", "shop", "Two")
    received.clear()
    await messenger.edit_text("per_anna", "shop", said.ref, "Three")

    [(_, update)] = received
    assert isinstance(update, MessageEdited)
    assert (update.message_ref, update.text) == (said.ref, "Three")
    by_bot, start, _ = (await messenger.state("per_anna")).messages
    assert (by_bot.ref, start.kind) == (asked, "start")
    for other in (by_bot, start):
        with pytest.raises(NotFound):
            await messenger.edit_text("per_anna", "shop", other.ref, "Three")


async def test_a_button_with_data_tells_the_bot_and_one_with_a_page_does_not(
    messenger: Messenger, mailbox: Mailbox, received: Received
) -> None:
    row = (Button("Yes", data="yes"), Button("Site", url="https://shop.example"))
    ref = await mailbox.add("shop", "per_anna", OutgoingMessage("Coming?", buttons=(row,)))
    await messenger.press("per_anna", "shop", ref, 0, 0)

    [(_, update)] = received
    assert isinstance(update, ButtonPressed)
    assert (update.data, update.message_ref, update.text) == ("yes", ref, "Yes")
    with pytest.raises(ValidationFailed):
        await messenger.press("per_anna", "shop", ref, 0, 1)
    for place in ((0, 2), (1, 0)):
        with pytest.raises(NotFound):
            await messenger.press("per_anna", "shop", ref, *place)


async def test_a_block_is_told_once(messenger: Messenger, received: Received) -> None:
    await messenger.set_blocked("per_anna", "shop", True)
    blocked = await messenger.state("per_anna")
    await messenger.set_blocked("per_anna", "shop", True)

    [(_, update)] = received
    assert isinstance(update, Blocked)
    assert [chat.blocked for chat in blocked.chats] == [True]
    assert (await messenger.state("per_anna")).revision == blocked.revision


async def test_a_page_that_knows_the_newest_revision_does_not_wait_for_a_closing_messenger(
    messenger: Messenger, asked: str
) -> None:
    newest = (await messenger.state("per_anna")).revision
    messenger.close()
    state = await messenger.state("per_anna", since=newest, wait_s=600)

    assert (state.revision, state.messages) == (newest, [])


async def test_who_is_gone_does_nothing(messenger: Messenger) -> None:
    await messenger.delete_person("per_anna")

    for act in (
        messenger.send_text("per_anna", "shop", "Hi"),
        messenger.set_blocked("per_anna", "shop", True),
    ):
        with pytest.raises(NotFound, match="no such person"):
            await act
