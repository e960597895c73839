"""What the platform tells becomes our updates; what can't be read is logged, and stops nothing."""

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    MessageReceived,
    Started,
    Unreadable,
    Update,
)
from msgsvc_core.kernel.json import to_json
from msgsvc_devkit.platforms.max.checks import UPDATE_TYPES as EVERY_TYPE
from msgsvc_max.updates import UPDATE_TYPES, InvalidUpdate, read_call, read_update

#: As the platform's own client has them for its tests (max-bot-api-client-go, stabs/), with our names.
USER = {
    "user_id": 123456789,
    "first_name": "John",
    "last_name": "Doe",
    "is_bot": False,
    "last_activity_time": 1775025580000,
    "name": "John Doe",
}
JOHN = ChannelUser("123456789", "John", None, "ru")
STARTED = {
    "timestamp": 1775025604499,
    "chat_id": 182182182,
    "user": USER,
    "payload": "auth_1",
    "user_locale": "ru",
    "user_id": 123456789,
    "update_type": "bot_started",
}
WRITTEN = {
    "message": {
        "recipient": {"chat_id": 182182182, "chat_type": "dialog", "user_id": 229229229},
        "timestamp": 1775053255737,
        "body": {"mid": "mid.ffffbdb48e6c3775", "seq": 116327994376978687, "text": "Hi"},
        "sender": USER,
    },
    "timestamp": 1775025604499,
    "user_locale": "ru",
    "update_type": "message_created",
}
PRESSED: dict[str, Any] = {
    "callback": {
        "timestamp": 1775026702210,
        "callback_id": "f9LHodD0cOJf4_DkJGeq8BkDgc5vgSwZ",
        "user": USER,
        "payload": "picture",
    },
    "message": {
        "recipient": {"chat_id": 182182182, "chat_type": "dialog", "user_id": 123456789},
        "timestamp": 1775026671403,
        "body": {"mid": "mid.000000000adf429c", "seq": 116328147937082782, "text": "Hello"},
        "sender": {**USER, "user_id": 229229229, "is_bot": True},
    },
    "timestamp": 1775025604499,
    "user_locale": "ru",
    "update_type": "message_callback",
}
EXAMPLES: list[dict[str, Any]] = [
    STARTED,
    WRITTEN,
    PRESSED,
    {**STARTED, "update_type": "bot_stopped"},
]


def but(update: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with something else at `path`."""
    changed = copy.deepcopy(update)
    *holders, last = path.split(".")
    holder: Any = changed
    for name in holders:
        holder = holder[name]
    holder[last] = value
    return changed


def read(update: dict[str, Any]) -> Any:
    return read_update(copy.deepcopy(update))


def test_a_start_brings_its_payload() -> None:
    started = read(STARTED)

    assert started == Started(
        update_id=started.update_id, chat_id="182182182", user=JOHN, payload="auth_1"
    )
    assert started.update_id.startswith("bot_started:")


@pytest.mark.parametrize("payload", [None, ""])
def test_a_start_without_a_link_has_no_payload(payload: str | None) -> None:
    assert read(but(STARTED, "payload", payload)).payload == ""


def test_a_text_names_its_message() -> None:
    written = read(WRITTEN)

    assert isinstance(written, MessageReceived)
    assert (written.chat_id, written.user) == ("182182182", JOHN)
    assert (written.text, written.message_ref) == ("Hi", "mid.ffffbdb48e6c3775")


def test_a_picture_without_a_word_is_an_empty_text() -> None:
    assert read(but(WRITTEN, "message.body.text", None)).text == ""


def test_a_press_names_button_and_message() -> None:
    pressed = read(PRESSED)

    assert isinstance(pressed, ButtonPressed)
    assert (pressed.data, pressed.message_ref) == ("picture", "mid.000000000adf429c")
    assert (pressed.chat_id, pressed.user) == ("182182182", JOHN)
    assert pressed.button_ref == PRESSED["callback"]["callback_id"]


@pytest.mark.parametrize("kind", ["bot_stopped", "dialog_removed"])
def test_a_stopped_bot_is_blocked(kind: str) -> None:
    assert isinstance(read({**STARTED, "update_type": kind}), Blocked)


@pytest.mark.parametrize(
    "update",
    [
        but(WRITTEN, "message.recipient.chat_type", "chat"),
        but(WRITTEN, "message.recipient.chat_type", "channel"),
        but(WRITTEN, "message.sender.is_bot", True),
        but(WRITTEN, "message.sender", None),
        but(PRESSED, "message", None),
    ],
)
def test_what_means_nothing_to_us_is_left_out_without_a_word(update: dict[str, Any]) -> None:
    with capture_logs() as logs:
        assert read_call(to_json(update).encode(), "messenger_a") == []

    assert logs == []


@pytest.mark.parametrize("update", EXAMPLES, ids=lambda update: update["update_type"])
def test_the_same_update_has_the_same_id_whatever_else_changes(update: dict[str, Any]) -> None:
    again = but(update, "user_locale", "en")
    user = "callback.user" if "callback" in update else "message.sender"
    again = but(again, "user" if "user" in update else user, {**USER, "last_activity_time": 1})

    assert read(again).update_id == read(update).update_id


@pytest.mark.parametrize(
    "other",
    [
        but(STARTED, "timestamp", 1775025604500),
        but(STARTED, "chat_id", 182182183),
        {**STARTED, "update_type": "bot_stopped"},
        {**STARTED, "update_type": "dialog_removed"},
        WRITTEN,
        but(WRITTEN, "message.body.mid", "mid.2"),
        PRESSED,
        but(PRESSED, "callback.timestamp", 1775026702211),
        but(PRESSED, "callback.payload", "other"),
        but(PRESSED, "callback.callback_id", "other"),
        but(PRESSED, "callback.user", {**USER, "user_id": 1}),
    ],
)
def test_other_updates_have_other_ids(other: dict[str, Any]) -> None:
    ids = [read(one).update_id for one in EXAMPLES if one != other]

    assert read(other).update_id not in ids


@pytest.mark.parametrize(
    ("update", "says"),
    [
        (None, "the update: not an object"),
        ([STARTED], "the update: not an object"),
        ({}, "update_type: missing"),
        ({**STARTED, "update_type": "moon_landed"}, "update_type: unknown"),
        ({**STARTED, "update_type": ["x"]}, "update_type: not a text"),
        (but(STARTED, "chat_id", "182182182"), "chat_id: not a number"),
        (but(STARTED, "chat_id", True), "chat_id: not a number"),
        (but(STARTED, "chat_id", 10**30), "chat_id: not a number"),
        (but(STARTED, "user", None), "user: not an object"),
        (but(STARTED, "user.user_id", 1.5), "user_id: not a number"),
        (but(STARTED, "payload", {"a": 1}), "payload: not a text"),
        (but(WRITTEN, "message", None), "message: not an object"),
        (but(WRITTEN, "message.body", None), "message.body: not an object"),
        (but(WRITTEN, "message.body.mid", ""), "mid: missing"),
        (but(PRESSED, "callback.callback_id", None), "callback_id: missing"),
        (but(PRESSED, "callback", "x"), "callback: not an object"),
    ],
)
def test_what_cannot_be_read_is_kept_with_the_name_of_what_is_wrong(update: Any, says: str) -> None:
    body = to_json(update).encode()
    [found] = read_call(body, "messenger_a")

    assert isinstance(found, Unreadable)
    assert found.reason == ("unknown_kind" if says == "update_type: unknown" else "malformed")
    assert found.detail == says
    assert json.loads(found.raw) == json.loads(body)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"NaN"])
def test_what_is_no_json_is_kept(body: bytes) -> None:
    [found] = read_call(body, "messenger_a")

    assert isinstance(found, Unreadable)
    assert found.raw == body


def test_what_no_database_takes_is_left_out_of_texts() -> None:
    body = to_json(but(STARTED, "user.first_name", "@")).replace("@", "J\\u0000o\\ud83dn").encode()

    (started,) = read_call(body, "messenger_a")

    assert started.user.first_name == "J\ufffdo\ufffdn"


def test_every_type_that_is_asked_for_exists() -> None:
    assert set(UPDATE_TYPES) <= EVERY_TYPE


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

#: Places of the examples, where the fuzzer puts anything.
PLACES = [
    (example, path)
    for example in EXAMPLES
    for path in (
        *example,
        *(
            f"{key}.{name}"
            for key, value in example.items()
            if isinstance(value, dict)
            for name in value
        ),
        *(
            f"message.{key}.{name}"
            for key, value in example.get("message", {}).items()
            if isinstance(value, dict)
            for name in value
        ),
    )
]


@settings(deadline=None)  # other work on the machine
@given(place=st.sampled_from(PLACES), value=ANY_JSON)
def test_whatever_stands_anywhere_gives_an_update_or_a_line(
    place: tuple[dict[str, Any], str], value: Any
) -> None:
    check(but(*place, value))


@settings(deadline=None)  # other work on the machine
@given(ANY_JSON)
def test_any_json_gives_an_update_or_a_line(value: Any) -> None:
    check(value)


@settings(deadline=None)  # other work on the machine
@given(st.binary())
def test_any_bytes_stop_nothing(body: bytes) -> None:
    read_call(body, "messenger_a")


def check(raw: Any) -> None:
    with suppress(InvalidUpdate):
        update = read_update(raw)
        assert update is None or storable(update)


def storable(update: Update) -> bool:
    """Whether every text of it is one that a database takes."""
    texts = [update.update_id, update.chat_id, update.user.user_id, update.user.first_name]
    texts += [update.user.username or "", update.user.lang or ""]
    texts += [getattr(update, name, None) or "" for name in ("payload", "text", "data")]
    assert all(isinstance(text, str) and "\0" not in text for text in texts)
    "".join(texts).encode()
    return bool(update.update_id and update.chat_id and len(update.update_id) < 64)
