"""Updates whose handler failed are kept as the channel read them, and read again."""

from dataclasses import fields, replace

import pytest

from msgsvc_core.channels import updates
from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.shelf.failed_updates import KINDS, item_of, update_of
from msgsvc_core.channels.updates import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)

ANN = ChannelUser("7", "Ann", "ann:example.org", "ru-RU", "+4915120000001")
PHOTO = ReceivedFile("image", "file-1", "cup.jpg", "image/jpeg", 4182)

MESSAGE = MessageReceived(
    update_id="2",
    chat_id="c7",
    user=ANN,
    thread="t1",
    text="Привет 👋",
    files=(PHOTO, ReceivedFile("document", "file-2")),
    message_ref="m1",
    reply_to="m0",
    subject="Order 7",
    refers_to=("a@b", "c@d"),
    begins=True,
)

#: One of each kind, in which no field has its default.
UPDATES: list[Update] = [
    Started(update_id="1", chat_id="c7", user=ANN, thread="t1", payload="auth_s"),
    MESSAGE,
    MessageEdited(
        update_id="3",
        chat_id="c7",
        user=ANN,
        thread="t1",
        message_ref="m1",
        text="Hi",
        files=(PHOTO,),
    ),
    ButtonPressed(
        update_id="4",
        chat_id="c7",
        user=ANN,
        thread="t1",
        data="~yes",
        message_ref="m1",
        button_ref="b1",
        text="Yes",
    ),
    Blocked(update_id="5", chat_id="c7", user=ANN, thread="t1", by_failure=True),
    Unblocked(update_id="6", chat_id="c7", user=ANN, thread="t1"),
    BotCreated(
        update_id="7", chat_id="c7", user=ANN, thread="t1", account="42", username="shop_bot"
    ),
    ChatMoved(
        update_id="8", chat_id="c7", user=ANN, thread="t1", new_chat_id="c8", new_user_id="8"
    ),
    DeliveryReported(
        update_id="9",
        chat_id="c7",
        user=ANN,
        thread="t1",
        message_ref="m1",
        state="failed",
        at_ms=1,
        reason=Reason.CHAT_NOT_FOUND,
        detail="user unknown",
        up_to_ms=2,
    ),
]


def test_all_kinds_are_kept_but_what_no_channel_could_read() -> None:
    declared = [each for each in vars(updates).values() if isinstance(each, type)]

    assert set(KINDS.values()) == {
        each for each in declared if issubclass(each, Update) and each not in {Update, Unreadable}
    }
    assert {type(update) for update in UPDATES} == set(KINDS.values())


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_an_update_is_read_as_it_was_kept(update: Update) -> None:
    item = item_of(update, RuntimeError("secret"))
    again = update_of(type(update).__name__, item.raw)

    assert again == update
    assert [type(getattr(again, each.name)) for each in fields(again)] == [
        type(getattr(update, each.name)) for each in fields(update)
    ]
    assert (item.reason, item.user, item.update_id) == (
        UnreadableReason.FAULT,
        ANN,
        update.update_id,
    )
    assert "secret" not in item.detail


def test_a_text_that_is_no_unicode_is_kept_too() -> None:
    odd = replace(MESSAGE, text="a\ud800\0b")

    assert update_of("MessageReceived", item_of(odd, RuntimeError()).raw) == odd
