"""Every way in which the platform fails becomes one of the seven reasons."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.http import PlatformAnswer
from msgsvc_core.kernel.json import to_json
from msgsvc_devkit.platforms.max import Refused
from msgsvc_max import channel as channel_module
from msgsvc_max.failures import MaxRefusal, read_answer, to_refusal

from .conftest import failure_of, send_to

#: What the platform says, and what it means. Codes and messages as bots have met them.
TABLE = [
    (401, "verify.token", "Invalid access_token", Reason.BOT_BANNED),
    (401, "", "", Reason.BOT_BANNED),
    (403, "verify.token", "Invalid access_token", Reason.BOT_BANNED),
    (403, "chat.denied", "error.dialog.suspended", Reason.USER_BLOCKED_BOT),
    (403, "error.dialog.suspended", "", Reason.USER_BLOCKED_BOT),
    (403, "chat.denied", "dialogs.suspended", Reason.USER_BLOCKED_BOT),
    (403, "chat.denied", "error.chat.denied", Reason.CHAT_NOT_FOUND),
    (403, "chat.denied", "chat.send.msg.no.permission.because.not.admin", Reason.UNKNOWN),
    (403, "access.denied", "You don't have permission", Reason.UNKNOWN),
    (404, "chat.not.found", "Chat 990000015 not found", Reason.CHAT_NOT_FOUND),
    (404, "dialog.not.found", "error.dialog.notfound", Reason.CHAT_NOT_FOUND),
    (404, "not.found", "User 12 not found", Reason.CHAT_NOT_FOUND),
    (200, "chat.not.found", "Chat 1 not found", Reason.CHAT_NOT_FOUND),
    (404, "not.found", "Message not found", Reason.INVALID_MESSAGE),
    (400, "proto.payload", "text: size must be between 0 and 4000", Reason.INVALID_MESSAGE),
    (400, "", "", Reason.INVALID_MESSAGE),
    (413, "too.large", "Too large", Reason.INVALID_MESSAGE),
    (400, "attachment.not.ready", "Key: errors.process.attachment", Reason.PLATFORM_UNAVAILABLE),
    (429, "too.many.requests", "", Reason.RATE_LIMITED),
    (429, "", "", Reason.RATE_LIMITED),
    (400, "too.many.requests", "", Reason.RATE_LIMITED),
    (500, "internal.error", "", Reason.PLATFORM_UNAVAILABLE),
    (502, "", "", Reason.PLATFORM_UNAVAILABLE),
    (503, "service.unavailable", "Service unavailable", Reason.PLATFORM_UNAVAILABLE),
    (504, "", "", Reason.PLATFORM_UNAVAILABLE),
    (302, "", "", Reason.PLATFORM_UNAVAILABLE),
    (404, "", "", Reason.PLATFORM_UNAVAILABLE),
    (407, "", "", Reason.PLATFORM_UNAVAILABLE),
    (405, "method.not.allowed", "", Reason.UNKNOWN),
    (418, "teapot", "", Reason.UNKNOWN),
]


@pytest.mark.parametrize(("status", "code", "words", "reason"), TABLE)
def test_an_answer_has_its_reason(status: int, code: str, words: str, reason: Reason) -> None:
    body = to_json({"code": code, "message": words} if code or words else {}).encode()

    with pytest.raises(MaxRefusal) as caught:
        if status == 200:
            read_answer(PlatformAnswer(status, {}, body))
        raise to_refusal(status, {}, {"code": code, "message": words})

    assert caught.value.reason is reason
    assert str(status) in caught.value.text


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("1e9", 86_400.0),
    ],
)
def test_only_a_sensible_wait_is_believed(header: str, wait_s: float | None) -> None:
    refusal = to_refusal(429, {"Retry-After": header}, {})

    assert refusal.retry_after_s == wait_s


@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"[" * 100_000, b"\xff"])
async def test_an_answer_that_is_no_object_is_an_error(status: int, body: bytes) -> None:
    with pytest.raises(DeliveryError) as caught:
        read_answer(PlatformAnswer(status, {}, body))

    expected = Reason.INVALID_MESSAGE if status == 400 else Reason.PLATFORM_UNAVAILABLE
    assert caught.value.reason is expected


def test_a_refusal_with_status_200_is_one() -> None:
    body = b'{"success": false, "message": "No such subscription"}'

    with pytest.raises(MaxRefusal, match="No such subscription"):
        read_answer(PlatformAnswer(200, {}, body))


def test_long_words_are_cut() -> None:
    assert len(to_refusal(400, {}, {"code": "x", "message": "y" * 10_000}).text) == 300


async def test_a_stopped_bot_is_blocked(channel, ann):
    await ann.block()

    error = await failure_of(send_to(channel, ann))

    assert error.reason is Reason.USER_BLOCKED_BOT


async def test_who_never_started_has_no_chat(channel, platform):
    error = await failure_of(send_to(channel, platform.person("Bob")))

    assert error.reason is Reason.CHAT_NOT_FOUND


@pytest.mark.parametrize("chat_id", ["", "abc", "1; 2", "--1", "1.0"])
async def test_a_chat_that_is_no_number_is_not_asked_for(channel, platform, chat_id):
    error = await failure_of(channel.send(chat_id, OutgoingMessage("Hello")))

    assert error.reason is Reason.CHAT_NOT_FOUND
    assert platform.calls == []


async def test_a_limit_says_how_long_to_wait(channel, platform, ann):
    platform.faults.per_bot_s, platform.faults.retry_after_s = 0, 7

    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.retry_after_s, error.scope) == (Reason.RATE_LIMITED, 7.0, "bot")


async def test_a_limit_without_a_wait_leaves_it_to_us(channel, platform, ann):
    platform.faults.per_chat_s = 0

    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.retry_after_s) == (Reason.RATE_LIMITED, None)


@pytest.mark.parametrize(("how", "in_doubt"), [("reset", True), ("lost", True), ("garbage", True)])
async def test_a_call_that_may_have_been_done_is_in_doubt(channel, platform, ann, how, in_doubt):
    platform.faults.break_next(how)

    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, in_doubt)


@pytest.mark.parametrize(
    ("status", "in_doubt"), [(500, False), (502, False), (503, False), (504, True)]
)
async def test_a_gateway_that_stopped_waiting_leaves_a_message_in_doubt(
    channel, platform, ann, status, in_doubt
):
    platform.faults.fail_next(Refused(status, "", ""))

    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, in_doubt)


async def test_what_is_no_text_is_an_invalid_message(channel, ann):
    ref = await send_to(channel, ann)
    half = OutgoingMessage("half \ud83d")

    assert channel.problem(half) == "text: holds half of a character"
    for call in (channel.send, lambda chat_id, message: channel.edit(chat_id, ref, message)):
        error = await failure_of(call(str(ann.chat_id), half))
        assert error.reason is Reason.INVALID_MESSAGE
        assert not error.in_doubt


async def test_an_edit_may_be_done_twice(channel, platform, ann):
    ref = await send_to(channel, ann)
    platform.faults.break_next("lost")

    error = await failure_of(channel.edit(str(ann.chat_id), ref, OutgoingMessage("New")))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)


async def test_a_platform_that_is_away_was_not_asked(channel, platform, ann):
    await platform.stop()

    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)


async def test_a_platform_that_says_nothing_is_given_up(make_channel, platform, ann):
    # As long as a busy machine may take to send the call.
    channel = await make_channel(timeout_s=2)
    platform.faults.break_next("hang")

    error = await failure_of(send_to(channel, ann))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, True)


async def test_a_file_that_never_gets_ready_is_tried_later(
    channel, platform, ann, monkeypatch, media_host
):
    monkeypatch.setattr(channel_module, "NOT_READY_WAITS_S", (0.0, 0.0))
    platform.files.not_ready = 99
    media: Any = {"type": "video", "url": f"{media_host.url}/v.mp4"}

    error = await failure_of(channel.send(str(ann.chat_id), _with(media)))

    assert error.reason is Reason.PLATFORM_UNAVAILABLE
    assert len(platform.calls_of("POST /messages")) == 3


async def test_calls_at_once_fail_each_by_itself(channel, platform, ann):
    platform.faults.fail_next(Refused(400, "proto.payload", "no"), times=2)

    ended = await asyncio.gather(*(send_to(channel, ann) for _ in range(6)), return_exceptions=True)

    assert sum(isinstance(one, MaxRefusal) for one in ended) == 2
    assert len(ann.messages) == 4


def _with(media: Any) -> OutgoingMessage:
    return OutgoingMessage.from_payload({"text": "Look", "media": media})
