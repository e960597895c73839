"""What bots may put into chats."""

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.content.outgoing import Button, Media
from msgsvc_devkit import MemoryCore
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.models import Chat, Message
from msgsvc_sandbox.service import Messenger
from msgsvc_sandbox.wakeups import Wakeups

HELLO = OutgoingMessage("Hello", key="k1")
PICTURE = Media("image", "https://shop.example/cat.png")
WITH_PICTURE = OutgoingMessage("Hello", media=PICTURE)


async def shown(messenger: Messenger, since: int = 0) -> list[Message]:
    """Anna's messages, as her page gets them; with `since` also removed ones."""
    return (await messenger.state("per_anna", since)).messages


async def chat(messenger: Messenger) -> Chat:
    [found] = (await messenger.state("per_anna")).chats
    return found


async def test_a_message_is_shown_and_its_person_told(
    core: MemoryCore, messenger: Messenger
) -> None:
    wakeups = Wakeups()
    with wakeups.expect("per_anna") as changed:
        ref = await Mailbox(core.db, core.clock, wakeups).add("shop", "per_anna", HELLO)

        assert changed.is_set()
    [message] = await shown(messenger)
    assert (message.ref, message.author, message.text) == (ref, "bot", "Hello")
    assert (await chat(messenger)).unread == 1


async def test_a_message_that_was_shown_before_is_not_shown_again(
    mailbox: Mailbox, messenger: Messenger
) -> None:
    first = await mailbox.add("shop", "per_anna", HELLO)

    assert await mailbox.add("shop", "per_anna", HELLO) == first
    assert len(await shown(messenger)) == 1


@pytest.mark.parametrize(
    ("person_id", "blocked", "reason"),
    [
        ("per_nobody", False, Reason.CHAT_NOT_FOUND),
        ("per_boris", False, Reason.CHAT_NOT_FOUND),
        ("per_anna", True, Reason.USER_BLOCKED_BOT),
    ],
    ids=["nobody", "not started", "blocked"],
)
async def test_a_bot_writes_where_it_was_let_in(
    mailbox: Mailbox, messenger: Messenger, person_id: str, blocked: bool, reason: Reason
) -> None:
    if blocked:
        await messenger.set_blocked(person_id, "shop", True)
    with pytest.raises(DeliveryError) as refused:
        await mailbox.add("shop", person_id, HELLO)

    assert refused.value.reason is reason
    if person_id != "per_nobody":
        assert (await messenger.state(person_id)).messages == []


@pytest.mark.parametrize(
    "outgoing",
    [
        OutgoingMessage("x" * 4001),
        OutgoingMessage(" \n"),
        OutgoingMessage("Look", media=Media("image", "javascript:alert(1)")),
        OutgoingMessage("Look", buttons=((Button("Go", url="data:text/html,x"),),)),
    ],
    ids=["too long", "empty", "media", "button"],
)
async def test_what_no_platform_takes_is_refused_whoever_gets_it(
    mailbox: Mailbox, messenger: Messenger, outgoing: OutgoingMessage
) -> None:
    for person_id in ("per_anna", "per_nobody"):
        with pytest.raises(DeliveryError) as refused:
            await mailbox.add("shop", person_id, outgoing)

        assert refused.value.reason is Reason.INVALID_MESSAGE
    assert await shown(messenger) == []


async def test_an_edit_without_a_picture_keeps_the_one_that_is_there(
    mailbox: Mailbox, messenger: Messenger
) -> None:
    ref = await mailbox.add("shop", "per_anna", WITH_PICTURE)
    await mailbox.replace("shop", "per_anna", ref, OutgoingMessage("Bye"))

    [message] = await shown(messenger)
    assert message.media is not None
    assert (message.text, message.media.url) == ("Bye", PICTURE.url)


async def test_a_bot_edits_its_own_messages_alone(mailbox: Mailbox, messenger: Messenger) -> None:
    theirs = await messenger.send_text("per_anna", "shop", "Hi")
    for ref in ("77", theirs.ref):
        with pytest.raises(DeliveryError) as refused:
            await mailbox.replace("shop", "per_anna", ref, OutgoingMessage("Bye"))

        assert refused.value.reason is Reason.INVALID_MESSAGE
    assert [message.text for message in await shown(messenger)] == ["Hi"]


async def test_a_message_is_removed_with_what_it_said_and_may_be_removed_again(
    mailbox: Mailbox, messenger: Messenger
) -> None:
    ref = await mailbox.add("shop", "per_anna", WITH_PICTURE)
    await mailbox.remove("shop", "per_anna", ref)
    assert await shown(messenger) == []
    [gone] = await shown(messenger, since=1)
    await mailbox.remove("shop", "per_anna", ref)

    assert (gone.ref, gone.deleted, gone.text, gone.media) == (ref, True, "", None)
    assert await shown(messenger, since=gone.revision) == []


async def test_the_answer_to_a_press_is_for_whoever_pressed(
    mailbox: Mailbox, messenger: Messenger
) -> None:
    await mailbox.answer("shop", "per_anna:4", "Done")

    answered = await chat(messenger)
    assert answered.notice == "Done"
    assert answered.notice_revision == (await messenger.state("per_anna")).revision
