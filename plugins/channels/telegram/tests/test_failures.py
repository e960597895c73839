"""What Telegram's refusals, and silence, mean to us."""

import contextlib
import socket

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_telegram.failures import refusal

BLOCKED, NO_CHAT = Reason.USER_BLOCKED_BOT, Reason.CHAT_NOT_FOUND
BANNED, INVALID = Reason.BOT_BANNED, Reason.INVALID_MESSAGE
AWAY, UNKNOWN = Reason.PLATFORM_UNAVAILABLE, Reason.UNKNOWN

HELLO = OutgoingMessage("Hello")


@pytest.mark.parametrize(
    ("status", "description", "reason"),
    [
        (403, "Forbidden: bot was blocked by the user", BLOCKED),
        (403, "Forbidden: user is deactivated", NO_CHAT),
        (403, "Forbidden: bot was kicked from the group chat", BLOCKED),
        (403, "Forbidden: bot was kicked from the supergroup chat", BLOCKED),
        (403, "Forbidden: bot is not a member of the channel chat", BLOCKED),
        (403, "Forbidden: bot can't initiate conversation with a user", NO_CHAT),
        (403, "Forbidden: bots can't send messages to bots", NO_CHAT),
        (403, "Forbidden: the group chat was deleted", NO_CHAT),
        (403, "Forbidden: something new", UNKNOWN),
        (400, "Bad Request: chat not found", NO_CHAT),
        (400, "Bad Request: private chat not found", NO_CHAT),
        (400, "Bad Request: PEER_ID_INVALID", NO_CHAT),
        (400, "Bad Request: USER_ID_INVALID", NO_CHAT),
        (400, "Bad Request: group chat was upgraded to a supergroup chat", NO_CHAT),
        (400, "Bad Request: message is too long", INVALID),
        (400, "Bad Request: BUTTON_DATA_INVALID", INVALID),
        (400, "Bad Request: message to edit not found", INVALID),
        (400, "Bad Request: wrong file identifier/HTTP URL specified", INVALID),
        (400, "Bad Request: not enough rights to send text messages to the chat", INVALID),
        (413, "Request Entity Too Large", INVALID),
        (400, "Logged out", BANNED),
        (401, "Unauthorized", BANNED),
        (401, "Unauthorized: invalid token specified", BANNED),
        (404, "Not Found", BANNED),
        (404, "Not Found: method not found", UNKNOWN),
        (421, "Misdirected Request: unallowed token specified", BANNED),
        (409, "Conflict: terminated by other getUpdates request", AWAY),
        (500, "Internal Server Error: restart", AWAY),
        (502, "Bad Gateway", AWAY),
        (418, "I'm a teapot", UNKNOWN),
        (400, "", INVALID),
    ],
)
async def test_each_refusal_has_its_reason(channel, telegram, anna, status, description, reason):
    telegram.fail_next("sendMessage", status, description)

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), HELLO)

    assert failed.value.reason is reason
    assert failed.value.text == description or "without a word" in failed.value.text
    assert failed.value.in_doubt is False
    assert anna.messages == []


@pytest.mark.parametrize(
    ("chat_id", "parameters", "retry_after_s", "scope"),
    [
        (1001, {"retry_after": 5}, 5.0, "bot"),
        (-1001, {"retry_after": 35}, 35.0, "chat"),
        (None, {"retry_after": 1}, 1.0, "bot"),
        (1001, {}, None, "bot"),
        (1001, {"retry_after": "soon"}, None, "bot"),
        (1001, {"retry_after": True}, None, "bot"),
        (1001, {"retry_after": -3}, None, "bot"),
        (1001, {"retry_after": 10**12}, 86_400.0, "bot"),
    ],
)
def test_a_429_says_how_long_and_whom_it_concerns(chat_id, parameters, retry_after_s, scope):
    error = refusal(429, "Too Many Requests: retry after 5", parameters, chat_id)

    assert error.reason is Reason.RATE_LIMITED
    assert (error.retry_after_s, error.scope) == (retry_after_s, scope)


@pytest.mark.parametrize(
    ("status", "body", "in_doubt", "reason"),
    [
        (200, b"<html>", True, AWAY),
        (200, b"", True, AWAY),
        (200, b"[]", True, AWAY),
        (200, b'"ok"', True, AWAY),
        (200, b'{"ok": true}', True, AWAY),
        (200, b'{"ok": "yes", "result": 1}', True, AWAY),
        (200, b'{"ok": true, "result": {}}', True, AWAY),
        (200, b'{"ok": true, "result": {"message_id": "1"}}', True, AWAY),
        (200, b"\xff\xfe\x00", True, AWAY),
        (200, b"[" * 100_000, True, AWAY),
        (302, b"", False, AWAY),
        (403, b"<html>who are you?</html>", False, AWAY),
        (404, b"<html>no such page</html>", False, AWAY),
        (413, b"<html>nginx</html>", False, INVALID),
        (502, b"<html>nginx</html>", False, AWAY),
        (503, b"", False, AWAY),
        (504, b"<html>nginx</html>", True, AWAY),
        (400, b'{"ok": false}', False, INVALID),
        (400, b'{"ok": false, "error_code": "x", "parameters": 7}', False, INVALID),
    ],
)
async def test_an_answer_that_is_not_the_apis_is_told_apart(
    channel, telegram, anna, status, body, in_doubt, reason
):
    telegram.answer_next("sendMessage", status, body)

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), HELLO)

    assert failed.value.reason is reason
    assert failed.value.in_doubt is in_doubt
    assert "html" not in failed.value.text


@pytest.mark.parametrize(
    ("fault", "seen"), [("resets", 0), ("lost_answers", 1)], ids=["before", "after"]
)
async def test_a_broken_connection_leaves_doubt(channel, telegram, anna, fault, seen):
    setattr(telegram.faults, fault, 1.0)

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), HELLO)

    assert (failed.value.reason, failed.value.in_doubt) == (AWAY, True)
    assert len(anna.messages) == seen


async def test_no_connection_leaves_no_doubt(make_channel):
    channel = make_channel(base_url="http://127.0.0.1:9")

    with pytest.raises(DeliveryError) as failed:
        await channel.send("1001", HELLO)

    assert (failed.value.reason, failed.value.in_doubt) == (AWAY, False)
    assert failed.value.text == "no connection to 127.0.0.1:9"


async def test_a_host_that_takes_no_connections_leaves_no_doubt(make_channel):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        where = full.getsockname()
        # Its queue is full: whoever comes now gets no answer at all, as from a host that is gone.
        with socket.create_connection(where), contextlib.ExitStack() as others:
            for _ in range(3):
                other = others.enter_context(socket.socket())
                other.setblocking(False)
                other.connect_ex(where)
            channel = make_channel(base_url=f"http://127.0.0.1:{where[1]}", timeout_s=0.4)

            with pytest.raises(DeliveryError) as failed:
                await channel.send("1001", HELLO)

    assert (failed.value.reason, failed.value.in_doubt) == (AWAY, False)


async def test_silence_ends_with_the_timeout_and_leaves_doubt(make_channel, telegram, anna):
    # As long as a busy machine may take to send the call.
    channel = make_channel(timeout_s=2)
    telegram.break_next("sendMessage", "hang")

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), HELLO)

    assert (failed.value.reason, failed.value.in_doubt) == (AWAY, True)


@pytest.mark.parametrize("chat_id", ["", "chat-Ann", "@name", "9" * 40, "1.5", "²"])
async def test_a_chat_id_that_is_none_of_telegrams_is_no_chat(channel, telegram, chat_id):
    with pytest.raises(DeliveryError) as failed:
        await channel.send(chat_id, HELLO)

    assert failed.value.reason is NO_CHAT
    assert telegram.calls == []


async def test_people_and_groups_refuse_in_telegrams_words(channel, telegram, anna):
    stranger, gone, group = telegram.person(), telegram.person(), telegram.group()
    gone.chat.deactivated = True
    group.kicked = True
    await anna.block()
    reasons = []

    for chat_id in (stranger.user_id, 77, anna.user_id, gone.user_id, group.chat_id):
        with pytest.raises(DeliveryError) as failed:
            await channel.send(str(chat_id), HELLO)
        reasons.append(failed.value.reason)

    assert reasons == [NO_CHAT, NO_CHAT, BLOCKED, NO_CHAT, BLOCKED]
