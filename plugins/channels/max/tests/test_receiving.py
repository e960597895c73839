"""Updates by polling and by webhook, as the channel takes them from the platform."""

import pytest

from msgsvc_core.channels import (
    Blocked,
    Button,
    ButtonPressed,
    InvalidWebhook,
    MessageReceived,
    Reason,
    Started,
    Unreadable,
    WebhookCall,
)
from msgsvc_core.kernel.json import to_json
from msgsvc_devkit import until
from msgsvc_devkit.platforms.max import Refused
from msgsvc_devkit.platforms.max.updates import Subscription

from .conftest import failure_of, send_to

SECRET = "5ec2e7" * 10
HOOK = "http://127.0.0.1:1/hooks/messenger_a"


async def test_updates_are_polled_in_order_and_acknowledged(channel, platform, ann):
    first = await channel.poll_updates(None)
    await ann.write("one")
    await ann.write("two")

    second = await channel.poll_updates(first.cursor)
    again = await channel.poll_updates(first.cursor)
    platform.updates.tell({**platform.updates.all[0], "timestamp": 1})
    third = await channel.poll_updates(second.cursor)

    assert [type(one) for one in first.updates] == [Started]
    assert [one.text for one in second.updates] == ["one", "two"]
    assert again.updates == second.updates
    assert [type(one) for one in third.updates] == [Started]


async def test_only_what_we_read_is_asked_for(channel, platform, ann):
    await ann.clear_dialog()
    await ann.write("after it")

    polled = await channel.poll_updates("0")

    assert [type(one) for one in polled.updates] == [Started, MessageReceived]


async def test_a_press_and_a_stop_are_told(channel, ann):
    start = await channel.poll_updates(None)
    ref = await send_to(channel, ann, buttons=((Button("Yes", data="~auth_yes"),),))
    callback_id = await ann.press("Yes")
    await ann.remove_dialog()

    polled = await channel.poll_updates(start.cursor)

    pressed, *blocked = polled.updates
    assert isinstance(pressed, ButtonPressed)
    assert (pressed.data, pressed.message_ref) == ("~auth_yes", ref)
    assert (pressed.button_ref, pressed.user.lang) == (callback_id, "en-GB")
    assert [type(one) for one in blocked] == [Blocked, Blocked]


async def test_polling_ends_webhooks_of_before(channel, platform, ann):
    platform.updates.subscriptions[HOOK] = Subscription(HOOK, None, None)

    # A bot that polled before has a cursor, and may have had a webhook since.
    await channel.poll_updates("1")

    assert platform.updates.subscriptions == {}


async def test_a_broken_update_among_others_costs_only_itself(channel, platform, ann):
    platform.updates.tell({"update_type": "message_created", "message": None})
    await ann.write("after it")

    polled = await channel.poll_updates("0")

    assert [type(one) for one in polled.updates] == [Started, Unreadable, MessageReceived]


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (Refused(401, "verify.token", ""), Reason.BOT_BANNED),
        (Refused(429, "too.many.requests", ""), Reason.RATE_LIMITED),
        (Refused(503, "service.unavailable", ""), Reason.PLATFORM_UNAVAILABLE),
    ],
)
async def test_a_poll_that_fails_says_why(channel, platform, refused, reason):
    await channel.check()
    platform.faults.fail_next(refused)

    error = await failure_of(channel.poll_updates("1"))

    assert error.reason is reason


@pytest.mark.parametrize("answer", [{}, {"updates": None}, {"updates": {}}])
async def test_an_answer_without_updates_is_an_error(channel, platform, monkeypatch, answer):
    async def poll(*_: object) -> dict[str, object]:
        return answer

    monkeypatch.setattr(platform.updates, "poll", poll)

    error = await failure_of(channel.poll_updates("1"))

    assert error.reason is Reason.PLATFORM_UNAVAILABLE


@pytest.mark.parametrize("marker", [None, True, "7"])
async def test_an_answer_without_a_marker_leaves_the_cursor(channel, platform, monkeypatch, marker):
    async def poll(*_: object) -> dict[str, object]:
        return {"updates": [], "marker": marker}

    monkeypatch.setattr(platform.updates, "poll", poll)

    assert (await channel.poll_updates("6")).cursor == "6"


async def test_a_webhook_is_set_with_its_secret_and_takes_the_place_of_others(channel, platform):
    old = "https://old.example/hooks/messenger_a"
    platform.updates.subscriptions[old] = Subscription(old, None, None)

    await channel.set_webhook(HOOK, SECRET)
    await channel.set_webhook(HOOK, SECRET[::-1])

    (subscription,) = platform.updates.subscriptions.values()
    assert (subscription.url, subscription.secret) == (HOOK, SECRET[::-1])
    assert "bot_started" in (subscription.types or ())


async def test_an_address_that_the_platform_refuses_is_an_error(channel):
    error = await failure_of(channel.set_webhook("http://shop.example/hooks/a", SECRET))

    assert error.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("given", [None, "", "wrong", SECRET + "x"])
def test_a_call_without_the_secret_is_refused(channel, given):
    headers = {} if given is None else {"x-max-bot-api-secret": given}

    with pytest.raises(InvalidWebhook):
        channel.parse_update(WebhookCall(b"{}", headers, (SECRET,)))


def test_a_call_is_refused_where_no_secret_is_known(channel):
    with pytest.raises(InvalidWebhook):
        channel.parse_update(WebhookCall(b"{}", {"x-max-bot-api-secret": ""}, ()))


async def test_a_call_with_a_secret_of_before_is_taken(channel, platform, ann):
    update = platform.updates.all[0]
    call = WebhookCall(
        body=to_json(update).encode(),
        headers={"x-max-bot-api-secret": SECRET},
        secrets=("newer", SECRET),
    )

    (started,) = channel.parse_update(call)

    assert isinstance(started, Started)
    assert started.chat_id == str(ann.chat_id)


async def test_the_fake_calls_again_until_it_is_answered(platform, ann):
    platform.updates.subscriptions[HOOK] = Subscription(HOOK, SECRET, None)
    await ann.write("Hello?")

    async def tried_twice() -> bool:
        return len(platform.updates.webhook_answers) >= 2

    assert await until(tried_twice)
    assert set(platform.updates.webhook_answers) == {0}
