"""The fake Bot API itself: a test against it is worth what it refuses."""

import asyncio
import json
import sys

import httpx2
import pytest

from msgsvc_devkit import until
from msgsvc_devkit.platforms.telegram import STRICT, FakeTelegram, Limits, Refusal


@pytest.fixture
async def telegram():
    """One that may be sent anything."""
    async with FakeTelegram() as telegram:
        yield telegram


@pytest.fixture
async def call(telegram):
    """Calls a method with JSON: the status, and the result or the description."""
    async with httpx2.AsyncClient(timeout=30) as client:

        async def call(method, token=None, **params):
            url = f"{telegram.url}/bot{token or telegram.bot.token}/{method}"
            response = await client.post(url, json=params)
            body = response.json()
            return response.status_code, body.get("result", body.get("description"))

        yield call


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({"text": "x", "colour": "red"}, STRICT + "sendMessage has no parameter 'colour'"),
        ({"text": 7}, STRICT + "text must be of type String, not int"),
        ({"text": "x", "chat_id": "1001"}, STRICT + "chat_id must be of type Integer, not str"),
        ({"text": "x", "chat_id": True}, STRICT + "chat_id must be of type Integer, not bool"),
        ({}, "Bad Request: parameter text is missing"),
        ({"text": " \n"}, "Bad Request: message text is empty"),
        ({"text": "🎉" * 4097}, "Bad Request: message is too long"),
        ({"text": "x", "parse_mode": "HTML"}, STRICT + "sendMessage has no parameter 'parse_mode'"),
        ({"text": "x", "chat_id": 5}, "Bad Request: chat not found"),
    ],
)
async def test_a_wrong_message_is_refused(telegram, call, params, refusal):
    anna = telegram.person()
    await anna.start()

    status, said = await call("sendMessage", **{"chat_id": anna.user_id, **params})

    assert (status, said) == (400, refusal)
    assert bool(telegram.complaints) == said.startswith(STRICT)
    assert anna.messages == []


def entity(offset, length, kind="bold", **more):
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("entities", "fine"),
    [
        ([entity(0, 5), entity(0, 5, "italic")], True),
        ([entity(0, 2)], True),
        ([entity(0, 1)], False),  # half of the emoji
        ([entity(3, 3)], False),  # beyond the text
        ([entity(-1, 2)], False),
        ([entity(0, 0)], False),
        ([entity(0, 4), entity(3, 2, "italic")], False),  # overlap
        ([entity(0, 5), entity(3, 1, "code")], False),
        ([entity(0, 5, "text_link")], False),
        ([entity(0, 5, "text_link", url="https://a.example")], True),
        ([entity(0, 5, url="https://a.example")], False),
        ([entity(0, 5, "glitter")], False),
        (["bold"], False),
        ([entity(2, 1)] * 101, False),
    ],
)
async def test_entities_must_be_whole_nested_and_in_the_text(telegram, call, entities, fine):
    anna = telegram.person()
    await anna.start()

    status, _ = await call("sendMessage", chat_id=anna.user_id, text="🎉abc", entities=entities)

    assert status == (200 if fine else 400)


@pytest.mark.parametrize(
    ("button", "fine"),
    [
        ({"text": "b", "callback_data": "é" * 32}, True),
        ({"text": "b", "callback_data": "é" * 33}, False),
        ({"text": "b", "callback_data": ""}, False),
        ({"text": "b", "url": "javascript:x"}, False),
        ({"text": "b", "url": "http://localhost:9000/back"}, False),
        ({"text": "b", "url": "http://127.0.0.1:9000/back"}, True),
        ({"text": " ", "callback_data": "x"}, False),
        ({"text": "b", "callback_data": "x", "style": "danger"}, True),
        ({"text": "b", "callback_data": "x", "style": "warning"}, False),
        ({"text": "b", "callback_data": "x", "url": "https://a.example"}, False),
        ({"text": "b"}, False),
        ({"callback_data": "x"}, False),
    ],
)
async def test_buttons_must_be_as_documented(telegram, call, button, fine):
    anna = telegram.person()
    await anna.start()

    keyboard = {"inline_keyboard": [[button]]}
    status, _ = await call("sendMessage", chat_id=anna.user_id, text="x", reply_markup=keyboard)

    assert status == (200 if fine else 400)


async def test_tokens_and_methods_that_are_not_there(telegram, call):
    assert await call("getMe", token="1:x") == (401, "Unauthorized")
    assert await call("sendGlitter") == (404, "Not Found")
    telegram.bot.revoked = True
    assert await call("getMe") == (401, "Unauthorized")


async def test_a_group_takes_twenty_a_minute(telegram, call):
    telegram.limits = Limits()
    group = telegram.group()

    sent = [await call("sendMessage", chat_id=group.chat_id, text="x") for _ in range(21)]

    assert [status for status, _ in sent] == [200] * 20 + [429]
    assert sent[20][1].startswith("Too Many Requests: retry after ")
    assert 1 <= telegram.calls[-1].retry_after <= 60
    assert len(group.messages) == 20


def test_a_chat_takes_one_a_second_and_a_bot_sends_thirty():
    limits = Limits()

    for chat_id in range(1, 31):
        limits.take(7, chat_id, 100.0)
    for chat_id, now in ((1, 100.0), (31, 100.999)):
        with pytest.raises(Refusal, match="retry after 1"):
            limits.take(7, chat_id, now)

    limits.take(8, 1000, 100.0)  # another bot
    for chat_id in range(1, 31):
        limits.take(7, chat_id, 101.0)


async def test_get_updates_keeps_what_is_not_confirmed(telegram, call):
    anna = telegram.person()
    ids = [await anna.write(str(number)) for number in range(3)]

    first = (await call("getUpdates", limit=2))[1]
    second = (await call("getUpdates", offset=ids[1]))[1]
    last = (await call("getUpdates", offset=-1))[1]
    none = (await call("getUpdates", offset=ids[2] + 1))[1]

    assert [update["update_id"] for update in first] == ids[:2]
    assert [update["update_id"] for update in second] == ids[1:]
    assert [update["update_id"] for update in last] == ids[2:]
    assert none == []


async def test_get_updates_and_a_webhook_exclude_each_other(telegram, call):
    polling = asyncio.create_task(call("getUpdates", timeout=20))
    await until(lambda: _calls(telegram, 1))
    await call("setWebhook", url="http://127.0.0.1:9/")

    ended = await polling
    refused = await call("getUpdates")
    await call("setWebhook", url="")

    assert ended == (409, "Conflict: terminated by setWebhook request")
    assert refused[0] == 409
    assert "webhook is active" in refused[1]
    assert (await call("getUpdates"))[0] == 200


async def test_a_webhook_is_called_in_order_and_again_until_it_answers(telegram, call):
    anna = telegram.person()
    seen = []

    async def take(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        seen.append((head, json.loads(await reader.readexactly(length))))
        status = b"500 Oh" if len(seen) == 1 else b"200 OK"
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await call("setWebhook", url=f"http://127.0.0.1:{port}/", secret_token="s-1")
        await anna.write("one")
        await anna.write("two")
        await until(lambda: _posts(telegram, 3))

    assert [body["message"]["text"] for _, body in seen] == ["one", "one", "two"]
    assert all(b"X-Telegram-Bot-Api-Secret-Token: s-1" in head for head, _ in seen)
    assert [status for _, status in telegram.webhook_calls] == [500, 200, 200]


async def test_a_bot_hears_of_a_block_and_can_not_write_then(telegram, call):
    anna = telegram.person()
    await anna.start()
    await anna.block()

    refused = await call("sendMessage", chat_id=anna.user_id, text="x")
    await anna.start("again")

    kinds = [sorted(update)[0] for update in (await call("getUpdates"))[1]]
    assert refused == (403, "Forbidden: bot was blocked by the user")
    assert kinds == ["message", "my_chat_member", "my_chat_member", "message"]


async def test_it_can_be_run_by_hand():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "msgsvc_devkit.platforms.telegram", "--port", "0",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    said = ""
    while "base_url" not in said:
        said += (await process.stdout.readline()).decode()
    token, url = (
        line.split('"')[1] for line in said.splitlines() if "token" in line or "base_url" in line
    )
    async with httpx2.AsyncClient() as client:
        process.stdin.write(b"start auth_x\n")
        await process.stdin.drain()
        updates = await client.post(f"{url}/bot{token}/getUpdates", json={"timeout": 10})
        message = updates.json()["result"][0]["message"]
        body = {"chat_id": message["chat"]["id"], "text": "Is it you?"}
        await client.post(f"{url}/bot{token}/sendMessage", json=body)
        while "Is it you?" not in said:
            said += (await process.stdout.readline()).decode()
    process.stdin.close()
    await process.wait()

    assert message["text"] == "/start auth_x"
    assert process.returncode == 0


async def _calls(telegram, count):
    return len(telegram.calls) >= count


async def _posts(telegram, count):
    return len(telegram.webhook_calls) >= count
