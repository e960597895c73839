"""What bots may put into chats, built from fakes."""

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.content.outgoing import Button, Media
from msgsvc_core.kernel.json import from_json
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fakes import FakeDatabase
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.models import Media as StoredMedia
from msgsvc_sandbox.models import MessageBody, Span
from msgsvc_sandbox.wakeups import Wakeups

from .rows import CHAT, message, tables

HELLO = OutgoingMessage("Hello", key="k1")
PICTURE = StoredMedia(type="image", url="https://shop.example/cat.png")


def mailbox(db: FakeDatabase, wakeups: Wakeups | None = None) -> Mailbox:
    return Mailbox(db, FakeClock(), wakeups or Wakeups())


async def test_a_message_is_shown_and_its_person_told() -> None:
    db, wakeups = tables(), Wakeups()
    with wakeups.expect("per_anna") as changed:
        ref = await mailbox(db, wakeups).add("shop", "per_anna", HELLO)

        assert changed.is_set()
    [row] = db.rows["sandbox_messages"]
    assert (ref, row["position"], row["send_key"], row["author"]) == ("6", 6, "k1", "bot")
    assert len(db.params_of("SET unread = unread + 1")) == 1


async def test_a_message_that_was_shown_before_is_not_shown_again() -> None:
    db = tables({"FROM sandbox_messages": [{"position": 3}]})

    assert await mailbox(db).add("shop", "per_anna", HELLO) == "3"
    assert db.rows["sandbox_messages"] == []


@pytest.mark.parametrize(
    ("db", "reason"),
    [
        (tables({"UPDATE sandbox_people SET": []}), Reason.CHAT_NOT_FOUND),
        (tables({"FROM sandbox_chats": []}), Reason.CHAT_NOT_FOUND),
        (tables({"FROM sandbox_chats": [{**CHAT, "blocked": 1}]}), Reason.USER_BLOCKED_BOT),
    ],
    ids=["nobody", "not started", "blocked"],
)
async def test_a_bot_writes_where_it_was_let_in(db: FakeDatabase, reason: Reason) -> None:
    with pytest.raises(DeliveryError) as refused:
        await mailbox(db).add("shop", "per_anna", HELLO)

    assert refused.value.reason is reason
    assert db.rows["sandbox_messages"] == []


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
async def test_what_no_platform_takes_is_refused_before_the_database_is_asked(
    outgoing: OutgoingMessage,
) -> None:
    db = FakeDatabase()
    with pytest.raises(DeliveryError) as refused:
        await mailbox(db).add("shop", "per_anna", outgoing)

    assert refused.value.reason is Reason.INVALID_MESSAGE


async def test_an_edit_without_a_picture_keeps_the_one_that_is_there() -> None:
    before = message(MessageBody(spans=[Span(text="Hello")], media=PICTURE))
    db = tables({"FROM sandbox_messages": [before]})
    await mailbox(db).replace("shop", "per_anna", "3", OutgoingMessage("Bye"))

    body = from_json(db.params_of("UPDATE sandbox_messages")[0]["body"])
    assert (body["spans"][0]["text"], body["media"]["url"]) == ("Bye", PICTURE.url)


async def test_a_bot_edits_its_own_messages_alone() -> None:
    theirs = message(MessageBody(spans=[Span(text="Hi")]), author="person")
    for found in ([], [theirs]):
        db = tables({"FROM sandbox_messages": found})
        with pytest.raises(DeliveryError) as refused:
            await mailbox(db).replace("shop", "per_anna", "3", OutgoingMessage("Bye"))

        assert refused.value.reason is Reason.INVALID_MESSAGE


async def test_a_message_is_removed_with_what_it_said_and_may_be_removed_again() -> None:
    before = message(MessageBody(spans=[Span(text="Hello")], media=PICTURE))
    db, gone = tables({"FROM sandbox_messages": [before]}), tables()
    await mailbox(db).remove("shop", "per_anna", "3")
    await mailbox(gone).remove("shop", "per_anna", "3")

    [written] = db.params_of("UPDATE sandbox_messages")
    assert written["deleted"] == 1
    assert "Hello" not in written["body"]
    assert PICTURE.url not in written["body"]
    assert gone.params_of("UPDATE sandbox_messages") == []


async def test_the_answer_to_a_press_is_for_whoever_pressed() -> None:
    db = tables()
    await mailbox(db).answer("shop", "per_anna:4", "Done")

    [written] = db.params_of("UPDATE sandbox_chats")
    assert (written["person_id"], written["notice"]) == ("per_anna", "Done")
    assert written["notice_revision"] == 6
