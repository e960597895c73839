"""Telegram's updates as ours."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    MessageReceived,
    Started,
    Unblocked,
    UnreadableReason,
)
from msgsvc_telegram.updates import WORDLESS, read_updates

ANNA = {
    "id": 1001,
    "is_bot": False,
    "first_name": "Anna",
    "username": "anna_k",
    "language_code": "ru",
}
PRIVATE = {"id": 1001, "type": "private", "first_name": "Anna"}
GROUP = {"id": -5, "type": "group", "title": "Family"}
WHO = {"update_id": "42", "chat_id": "1001", "user": ChannelUser("1001", "Anna", "anna_k", "ru")}


def message(**content):
    body = {"message_id": 9, "from": ANNA, "chat": PRIVATE, "date": 1_780_000_000, **content}
    return {"update_id": 42, "message": body}


def press(**content):
    shown = {
        "message_id": 8,
        "chat": PRIVATE,
        "date": 1,
        "reply_markup": {
            "inline_keyboard": [
                [{"text": "Site", "url": "https://a.example"}],
                [{"text": "Yes", "callback_data": "y"}],
            ]
        },
    }
    body = {"id": "77", "from": ANNA, "message": shown, "chat_instance": "1", "data": "y"}
    return {"update_id": 42, "callback_query": {**body, **content}}


def membership(status, chat=PRIVATE):
    body = {
        "chat": chat,
        "from": ANNA,
        "date": 1,
        "new_chat_member": {"user": {}, "status": status},
    }
    return {"update_id": 42, "my_chat_member": body}


@pytest.mark.parametrize(
    ("raw", "update"),
    [
        (message(text="/start"), Started(**WHO)),
        (message(text="/start auth_x-9_Z"), Started(**WHO, payload="auth_x-9_Z")),
        (message(text="/start@corner_coffee_bot  sub_1 "), Started(**WHO, payload="sub_1")),
        (message(text="/started"), MessageReceived(**WHO, text="/started", message_ref="9")),
        (message(text="Hi 🎉"), MessageReceived(**WHO, text="Hi 🎉", message_ref="9")),
        (
            message(caption="my cup", photo=[]),
            MessageReceived(**WHO, text="my cup", message_ref="9"),
        ),
        (
            message(caption="/start x", photo=[]),
            MessageReceived(**WHO, text="/start x", message_ref="9"),
        ),
        (
            message(sticker={}),
            MessageReceived(
                **WHO,
                text="[Message of the kind sticker, which can be seen in the messenger only]",
                message_ref="9",
            ),
        ),
        (
            press(),
            ButtonPressed(**WHO, data="y", message_ref="8", button_ref="77", text="Yes"),
        ),
        (
            press(message={"message_id": 8, "chat": PRIVATE, "date": 0}),
            ButtonPressed(**WHO, data="y", message_ref="8", button_ref="77"),
        ),
        (membership("kicked"), Blocked(**WHO)),
        (membership("member"), Unblocked(**WHO)),
    ],
)
def test_what_a_person_does_is_read(raw, update):
    assert read_updates([raw], "messenger_a") == [update]


@pytest.mark.parametrize("kind", sorted(WORDLESS))
@pytest.mark.parametrize(
    "content", [{}, None, "text", {"location": 7, "latitude": "x", "emoji": {}}]
)
def test_what_has_no_words_arrives_as_a_line(kind, content):
    updates = read_updates([message(**{kind: content})], "messenger_a")

    # Files are validated: what is none of Telegram's is not read.
    assert all(update.text or update.files for update in updates)
    assert updates or content


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[Location: 52.5, 13.4]"),
        (
            {
                "location": {"latitude": 52.5, "longitude": 13.4},
                "venue": {
                    "location": {"latitude": 52.5, "longitude": 13.4},
                    "title": "Café",
                    "address": "Street 1",
                },
            },
            "[Location: Café, Street 1, 52.5, 13.4]",
        ),
        (
            {"contact": {"first_name": "Ann", "last_name": "Lee", "phone_number": "+12025550123"}},
            "[Contact: Ann Lee, +12025550123]",
        ),
        ({"sticker": {"emoji": "👍"}}, "👍"),
        ({"dice": {"emoji": "🎲", "value": 6}}, "🎲"),
        (
            {"poll": {"question": "Why?"}},
            "[Message of the kind poll, which can be seen in the messenger only]",
        ),
    ],
)
def test_what_somebody_shares_is_told_in_a_line(content, text):
    (update,) = read_updates([message(**content)], "messenger_a")

    assert update == MessageReceived(**WHO, text=text, message_ref="9")


@pytest.mark.parametrize(
    "raw",
    [
        message(pinned_message={}),
        message(chat=GROUP, text="/start auth_x"),
        message(chat={"id": -100, "type": "channel"}, text="news"),
        message(**{"from": {**ANNA, "is_bot": True}}, text="I am a bot"),
        # A place that moves.
        {"update_id": 42, "edited_message": message(location={"latitude": 1.0})["message"]},
        {"update_id": 42, "edited_message": message(chat=GROUP, text="x")["message"]},
        {"update_id": 42, "channel_post": {}},
        press(data=None),
        press(message=None, inline_message_id="1"),
        press(message={"message_id": 8, "chat": GROUP, "date": 1}),
        membership("kicked", GROUP),
        membership("administrator"),
    ],
)
def test_what_means_nothing_to_us_is_skipped(raw):
    assert read_updates([raw], "messenger_a") == []


def test_a_person_without_name_and_language_is_read():
    (update,) = read_updates(
        [message(**{"from": {"id": 1001, "first_name": "A"}}, text="x")], "messenger_a"
    )

    assert update.user == ChannelUser("1001", "A")


def test_characters_that_databases_refuse_are_taken_out():
    (update,) = read_updates(
        [message(**{"from": {**ANNA, "first_name": "A\0\ud83c"}}, text="x\0y")], "messenger_a"
    )

    assert (update.user.first_name, update.text) == ("A?", "xy")


def test_an_unreadable_update_costs_only_itself_and_its_reason_does_not_repeat_it(capsys):
    raw = message(text={"secret": "my diary"})

    unreadable, good = read_updates([raw, message(text="next")], "messenger_a")

    assert good.text == "next"
    assert unreadable.reason == UnreadableReason.MALFORMED
    assert json.loads(unreadable.raw) == raw
    assert unreadable.detail == "text: string_type"
    assert "diary" not in "".join(capsys.readouterr()) + unreadable.detail + repr(unreadable)


@pytest.mark.parametrize("raw", [{"update_id": 5, "moon_landed": {}}, {"update_id": 5}])
def test_an_update_of_a_kind_that_telegram_does_not_have_is_unreadable(raw):
    [unreadable] = read_updates([raw], "messenger_a")

    assert unreadable.reason == UnreadableReason.UNKNOWN_KIND


def test_a_fault_of_ours_with_one_update_does_not_stop_the_next(monkeypatch):
    def failing(*_given):
        monkeypatch.undo()
        raise RuntimeError("a bug")

    monkeypatch.setattr("msgsvc_telegram.updates.files_of", failing)
    failed, good = read_updates([message(text="a"), message(text="next")], "messenger_a")

    assert (failed.reason, good.text) == (UnreadableReason.FAULT, "next")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)

#: Updates that are nearly right: known fields, some of them with anything inside.
_USER = st.fixed_dictionaries({"id": st.integers() | JSON, "first_name": st.text() | JSON})
_CHAT = st.fixed_dictionaries({"id": st.integers() | JSON, "type": st.just("private") | JSON})
_MESSAGE = st.fixed_dictionaries(
    {"message_id": st.integers() | JSON, "chat": _CHAT | JSON, "from": _USER | JSON},
    optional={"text": st.text() | JSON, "photo": JSON, "reply_markup": JSON},
)
_QUERY = st.fixed_dictionaries(
    {"id": st.text() | JSON, "from": _USER | JSON, "message": _MESSAGE | JSON, "data": st.text()}
)
_CHANGE = st.fixed_dictionaries(
    {"chat": _CHAT, "from": _USER, "new_chat_member": st.just({"status": "kicked"}) | JSON}
)
NEARLY = st.fixed_dictionaries(
    {"update_id": st.integers() | JSON},
    optional={
        "message": _MESSAGE | JSON,
        "callback_query": _QUERY | JSON,
        "my_chat_member": _CHANGE | JSON,
    },
)


@settings(deadline=None)  # other work on the machine
@given(st.lists(JSON | NEARLY, max_size=4))
def test_nothing_that_comes_stops_the_bot(found):
    updates = read_updates([*found, message(text="last")], "messenger_a")

    assert updates[-1] == MessageReceived(**WHO, text="last", message_ref="9")
    for update in updates:
        # What a database and an event can hold.
        json.dumps([update.update_id, update.chat_id, update.user.first_name]).encode()
        assert "\0" not in update.user.first_name
