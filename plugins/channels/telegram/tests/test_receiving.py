"""Updates by long polling and by webhook."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msgsvc_core.channels import (
    BotProfile,
    DeliveryError,
    InvalidWebhook,
    MessageReceived,
    Reason,
    Unreadable,
    WebhookCall,
)
from msgsvc_devkit import until
from msgsvc_devkit.platforms.telegram import FakeTelegram

HEADER = "x-telegram-bot-api-secret-token"


def texts(polled) -> list[str]:
    return [update.text for update in polled.updates if isinstance(update, MessageReceived)]


async def test_what_was_returned_is_acknowledged_by_the_next_call_and_not_before(channel, anna):
    await anna.write("one")
    first = await channel.poll_updates(None)

    again = await channel.poll_updates(None)
    await anna.write("two")
    second = await channel.poll_updates(first.cursor)

    assert texts(first) == texts(again) == ["one"]
    assert texts(second) == ["two"]


async def test_updates_that_came_while_nobody_asked_are_returned(channel, anna):
    for number in range(150):
        await anna.write(str(number))

    first = await channel.poll_updates(None)
    second = await channel.poll_updates(first.cursor)

    assert texts(first) + texts(second) == [str(number) for number in range(150)]


async def test_a_call_waits_for_an_update(channel, telegram, anna):
    first = await channel.poll_updates(None)

    waiting = asyncio.create_task(channel.poll_updates(first.cursor))
    await until(lambda: _asked(telegram, 2))
    early = waiting.done()
    await anna.write("at last")

    assert not early
    assert texts(await waiting) == ["at last"]


async def test_no_update_keeps_the_cursor(channel, telegram, monkeypatch):
    monkeypatch.setattr("msgsvc_telegram.channel.POLL_S", 0)

    nothing = await channel.poll_updates(None)
    later = await channel.poll_updates("424242")

    assert (nothing.updates, nothing.cursor) == ((), "0")
    assert later.cursor == "424242"
    # Only the first ends a webhook.
    assert len(telegram.calls_of("deleteWebhook")) == 1


async def test_what_can_not_be_read_is_passed_over_once(channel, telegram, anna):
    await channel.poll_updates(None)
    telegram.bot.updates.put({"update_id": 900_000_001, "message": "broken"})
    telegram.bot.updates.put({"update_id": 900_000_002, "brand_new": {}})
    broken = await channel.poll_updates("0")
    await anna.write("well")
    telegram.bot.updates.put({"update_id": 900_000_003, "message": {"message_id": 1, "chat": 7}})
    telegram.bot.updates.put(good(900_000_004, anna))

    polled = await channel.poll_updates(broken.cursor)

    assert texts(broken) == []
    assert texts(polled)[-1] == "good"
    assert polled.cursor == "900000005"


async def test_polling_ends_a_webhook(channel, telegram, anna):
    telegram.bot.updates.webhook.url = "http://127.0.0.1:9/hooks/x"
    await anna.write("kept")

    polled = await channel.poll_updates(None)

    assert "kept" in texts(polled)
    assert telegram.bot.updates.webhook.url == ""


async def test_a_webhook_of_meanwhile_is_ended_though_a_cursor_is_known(channel, telegram, anna):
    polled = await channel.poll_updates(None)
    telegram.bot.updates.webhook.url = "http://127.0.0.1:9/hooks/x"
    await anna.write("kept")

    polled = await channel.poll_updates(polled.cursor)

    assert texts(polled) == ["kept"]


async def test_two_that_poll_with_one_token_are_told(channel, make_channel, telegram, anna):
    other = make_channel()
    first = await channel.poll_updates(None)
    waiting = asyncio.create_task(channel.poll_updates(first.cursor))
    await until(lambda: _asked(telegram, 2))

    taking_over = asyncio.create_task(other.poll_updates(first.cursor))
    with pytest.raises(DeliveryError, match="each bot needs a token of its own") as failed:
        await waiting
    await anna.write("mine")

    assert failed.value.reason is Reason.PLATFORM_UNAVAILABLE
    assert texts(await taking_over) == ["mine"]


@pytest.mark.parametrize("result", [b"7", b'{"update_id": 1}', b"null"])
async def test_an_answer_that_is_no_list_is_an_error(channel, telegram, result):
    telegram.answer_next("getUpdates", 200, b'{"ok": true, "result": %s}' % result)

    with pytest.raises(DeliveryError):
        await channel.poll_updates("1")


async def test_only_what_we_read_is_asked_for(channel, telegram, anna):
    await channel.poll_updates(None)

    assert telegram.calls_of("getUpdates")[0].params["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
    ]
    assert telegram.bot.updates.add("channel_post", {}) is None


async def test_the_webhook_is_set_with_its_secret_and_keeps_what_waits(channel, telegram, anna):
    await channel.set_webhook("https://msgs.example/hooks/messenger_a", "s" * 64)

    (call,) = telegram.calls_of("setWebhook")
    assert call.params == {
        "url": "https://msgs.example/hooks/messenger_a",
        "secret_token": "s" * 64,
        "allowed_updates": ["message", "edited_message", "callback_query", "my_chat_member"],
    }
    assert len(telegram.bot.updates) == 1


async def test_telegram_says_why_it_refuses_an_address(make_channel, anna):
    async with FakeTelegram(https_only=True) as strict:
        channel = make_channel(base_url=strict.url, token=strict.bot.token)

        with pytest.raises(DeliveryError, match="HTTPS URL must be provided"):
            await channel.set_webhook("http://127.0.0.1:8000/hooks/messenger_a", "s")


async def test_check_says_why_no_update_comes(make_channel, telegram, anna):
    channel = make_channel(receiving="webhook")
    well = await channel.check()

    await channel.set_webhook("http://127.0.0.1:9/hooks/messenger_a", "s")
    await until(lambda: _called(telegram))
    stuck = await channel.check()

    assert (well.ok, well.detail) == (True, "@corner_coffee_bot")
    assert stuck.ok
    assert stuck.detail == (
        "@corner_coffee_bot; updates waiting: 1, Telegram's last call to us failed: Connection refused"
    )


@pytest.mark.parametrize("header", [{}, {HEADER: ""}, {HEADER: "old"}, {"x-other": "new"}])
def test_a_call_without_the_secret_is_not_telegrams(channel, anna, header):
    body = json.dumps(good(1, anna)).encode()

    with pytest.raises(InvalidWebhook):
        channel.parse_update(WebhookCall(body, header, ("new", "newer")))


@pytest.mark.parametrize("secret", ["new", "older"])
def test_a_call_with_the_secret_or_an_older_one_is_read(channel, anna, secret):
    body = json.dumps(good(7, anna)).encode()

    (update,) = channel.parse_update(WebhookCall(body, {HEADER: secret}, ("new", "older")))

    assert (update.update_id, update.text) == ("7", "good")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"null", b"[]", b'{"a": NaN}']
)
async def test_a_call_that_says_nothing_is_kept_and_can_be_read_again(channel, body):
    [found] = channel.parse_update(WebhookCall(body, {HEADER: "s"}, ("s",)))
    [still] = await channel.take_anyway(found)

    assert (found.reason, found.update_id) == (still.reason, still.update_id)
    assert found.reason == "malformed"


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,  # other work on the machine
)
@given(st.binary(max_size=200))
def test_no_body_makes_a_call_fail(channel, body):
    [found] = channel.parse_update(WebhookCall(body, {HEADER: "s"}, ("s",)))

    assert isinstance(found, Unreadable)


def good(update_id: int, person) -> dict[str, object]:
    message = {"message_id": 1, "from": person.user, "chat": person.chat.info, "text": "good"}
    return {"update_id": update_id, "message": message}


async def _asked(telegram, times: int) -> bool:
    return len(telegram.calls_of("getUpdates")) >= times


async def _called(telegram) -> bool:
    return bool(telegram.webhook_calls)


async def test_a_diagnosis_that_fails_takes_nothing_of_who_the_bot_is(make_channel, telegram):
    channel = make_channel(receiving="webhook")
    telegram.fail_next("getWebhookInfo", 502, "Bad Gateway")

    health = await channel.check()

    assert (health.ok, health.profile) == (True, BotProfile("Corner Coffee", "corner_coffee_bot"))
    assert health.account == telegram.bot.token.partition(":")[0]
    assert "getWebhookInfo" in health.detail
