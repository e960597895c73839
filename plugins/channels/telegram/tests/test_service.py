"""A service with a bot on Telegram, from the link to the answer, over real HTTP."""

import asyncio
from itertools import pairwise

import httpx2
import pytest

from msgsvc_devkit import settled, until
from msgsvc_devkit.platforms.telegram import FakeTelegram, Limits
from plugins.channels.telegram.tests.conftest import PNG, Site, SiteFactory

#: How updates come, with which runner: both ways on both databases, and by dramatiq's workers.
WAYS = [
    ("poll", "sqlite", "embedded"),
    ("poll", "postgresql", "embedded"),
    ("poll", "postgresql", "redis"),
    ("webhook", "sqlite", "embedded"),
    ("webhook", "postgresql", "embedded"),
    ("webhook", "postgresql", "redis"),
]


@pytest.fixture
async def site(make_site: SiteFactory, receiving: str) -> Site:
    return await make_site(receiving)


every_way = pytest.mark.parametrize(
    ("receiving", "backend", "runner"), WAYS, indirect=["backend", "runner"]
)


@every_way
async def test_a_person_signs_in(site: Site, telegram: FakeTelegram) -> None:
    anna = telegram.person("Anna", username="anna_k", lang="ru")
    session = await site.post("/v1/auth/session", state="xyz")

    await anna.open(session["links"]["messenger_a"])
    question = await anna.wait_for(button="Да")
    press = await anna.press("Да", question)
    await press.answered()
    await anna.wait_until(lambda: question.edits and not question.buttons)

    status = (await site.client.get(f"/v1/auth/session/{session['session_id']}/status")).json()
    who = await site.post("/v1/auth/verify", code=status["code"])
    assert (who["first_name"], who["username"], who["lang"]) == ("Anna", "anna_k", "ru")


async def test_a_rich_message_is_sent_and_edited(
    make_site: SiteFactory, telegram: FakeTelegram
) -> None:
    site, anna = await make_site("poll"), telegram.person()
    subscriber_id = await site.subscribe(anna)
    table = "<table><tr><th>Item</th><td>Tea</td></tr></table>"

    sent = await site.post(
        "/v1/send",
        subscriber_id=subscriber_id,
        text=f"<h2>Order 1207</h2><ul><li>Tea</li></ul>{table}",
        format="rich",
    )
    message = await anna.wait_for("Order 1207\nTea\n Item Tea")
    await settled(site.service)
    path = f"/v1/messages/{sent['message_id']}/edit"
    edit = await site.client.post(path, json={"text": "<h2>Delivered</h2>"})
    assert edit.status_code < 300, edit.text
    await anna.wait_until(lambda: message.text == "Delivered")

    assert message.rich == {"html": "<h2>Delivered</h2>"}


@every_way
async def test_a_message_with_buttons_and_a_photo_is_sent_and_clicked(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person()
    subscriber_id = await site.subscribe(anna)

    await site.post(
        "/v1/send",
        subscriber_id=subscriber_id,
        text="Your order is **ready** 🎉",
        format="markdown",
        media={"type": "image", "url": telegram.host_file("cup.png", PNG, "image/png")},
        buttons=[
            [{"text": "Coming", "data": "order:7"}],
            [{"text": "Menu", "url": "https://shop.example/menu"}],
        ],
    )
    message = await anna.wait_for("Your order is ready 🎉")
    await settled(site.service)  # nobody presses before the message is known to be sent
    press = await anna.press("Coming", message)

    clicked = await site.event("button.clicked")
    await press.answered()
    assert clicked["subscriber_id"] == subscriber_id
    assert message.file is not None
    assert message.file.content == PNG
    assert message.labels == [["Coming"], ["Menu"]]
    assert message.entities == [{"type": "bold", "offset": 14, "length": 5}]


@pytest.mark.both_databases
@every_way
async def test_who_blocks_the_bot_is_unsubscribed(site: Site, telegram: FakeTelegram) -> None:
    anna = telegram.person()
    subscriber_id = await site.subscribe(anna)

    await anna.block()

    deleted = await site.event("subscription.deleted")
    assert (deleted["subscriber_id"], deleted["reason"]) == (subscriber_id, "user_blocked_bot")


@pytest.mark.both_databases
@pytest.mark.parametrize("receiving", ["poll"])
async def test_a_block_that_nobody_told_us_of_is_found_by_sending(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person()
    subscriber_id = await site.subscribe(anna)
    anna.chat.blocked = True

    await site.post("/v1/send", subscriber_id=subscriber_id, text="Hello?")

    failed = await site.event("delivery.failed")
    assert (failed["reason"], failed["should_unsubscribe"]) == ("user_blocked_bot", True)
    assert (await site.event("subscription.deleted"))["subscriber_id"] == subscriber_id


@every_way
async def test_the_same_update_five_times_has_one_effect(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person()
    link = (await site.post("/v1/subscribers/links"))["links"]["messenger_a"]
    update_id = await anna.open(link)
    await site.event("subscription.created")
    assert update_id is not None

    telegram.bot.updates.repeat(update_id, 4)
    await anna.write("the last word")

    await until(lambda: _taken(telegram))
    await settled(site.service)
    assert len(await site.events("subscription.created")) == 1
    assert len(anna.messages) == 1


@pytest.mark.parametrize("receiving", ["webhook"])
@pytest.mark.parametrize("secret", [None, "", "wrong"])
async def test_a_call_without_the_secret_is_refused_and_has_no_effect(
    site: Site, telegram: FakeTelegram, secret: str | None
) -> None:
    anna = telegram.person()
    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    update = {
        "update_id": 1,
        "message": {"message_id": 1, "from": anna.user, "chat": anna.chat.info, "text": "/start"},
    }

    async with httpx2.AsyncClient() as stranger:
        response = await stranger.post(
            f"{site.url}/hooks/messenger_a", json=update, headers=headers
        )

    async with site.service.db.read() as tx:
        known = await tx.fetch_val("SELECT COUNT(*) FROM core_chats")
    assert response.status_code == 401
    assert known == 0


@pytest.mark.parametrize("receiving", ["webhook"])
async def test_the_secret_is_the_one_that_telegram_was_given(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person()
    await site.subscribe(anna)

    assert len(telegram.bot.updates.webhook.secret) == 64
    assert {status for _, status in telegram.webhook_calls} <= {0, 200}
    assert telegram.bot.updates.webhook.url == f"{site.url}/hooks/messenger_a"


@every_way
async def test_an_unreadable_update_does_not_stop_the_bot(
    site: Site, telegram: FakeTelegram
) -> None:
    telegram.bot.updates.put({"update_id": 1, "message": {"from": "nobody"}})
    telegram.bot.updates.put({"update_id": 2, "brand_new_kind": {}})
    telegram.bot.updates.put({"update_id": 3, "message": 7})
    anna = telegram.person()

    await site.subscribe(anna)

    assert await site.events("subscription.created")


@pytest.mark.parametrize("receiving", ["poll"])
@pytest.mark.parametrize(
    ("backend", "runner"),
    [("sqlite", "embedded"), ("postgresql", "redis")],
    indirect=True,
)
async def test_after_a_burst_of_429_everything_is_delivered(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str
) -> None:
    site = await make_site(receiving)
    people = [telegram.person(f"Person {number}") for number in range(5)]
    subscribers = [await site.subscribe(person) for person in people]
    telegram.fail_next(
        "sendMessage",
        429,
        "Too Many Requests: retry after 1",
        times=3,
        parameters={"retry_after": 1},
    )

    for subscriber_id in subscribers:
        await site.post("/v1/send", subscriber_id=subscriber_id, text="Sale!")

    await asyncio.gather(*(person.wait_for("Sale!") for person in people))
    delivered = await site.some_events("delivery.success", 5)
    refused = [call for call in telegram.calls_of("sendMessage") if call.status == 429]
    assert len(delivered) == 5
    assert len(refused) == 3
    assert [len(person.messages) for person in people] == [2] * 5  # the greeting, and the sale


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("receiving", "backend", "runner"),
    [
        ("webhook", "sqlite", "embedded"),
        ("poll", "postgresql", "embedded"),
        ("poll", "postgresql", "redis"),
    ],
    indirect=["backend", "runner"],
)
async def test_a_storm_loses_nothing_doubles_nothing_and_is_not_answered_too_early(
    site: Site, telegram: FakeTelegram
) -> None:
    people = [telegram.person(f"Person {number}") for number in range(12)]
    subscribers = [await site.subscribe(person) for person in people]
    await settled(site.service)
    before = len(telegram.calls)
    telegram.faults.too_many, telegram.faults.server_errors = 0.5, 0.2

    for subscriber_id in subscribers:
        await site.post("/v1/send", subscriber_id=subscriber_id, text="Sale!")
    await until(lambda: _refused(telegram, before, 12))
    telegram.faults.too_many = telegram.faults.server_errors = 0.0

    for person in people:
        await person.wait_for("Sale!")
    await site.some_events("delivery.success", len(people))
    storm = telegram.calls[before:]
    for person in people:
        assert [message.text for message in person.messages].count("Sale!") == 1
        calls = [call for call in storm if call.chat_id == person.user_id]
        for refused, retry in pairwise(calls):
            # 10 ms less: Telegram's clock is another than the service's.
            assert retry.at - refused.ended_at >= (refused.retry_after or 0) - 0.01


@pytest.mark.parametrize("receiving", ["poll"])
async def test_a_lane_meets_telegrams_own_limits_and_delivers_all(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str
) -> None:
    site = await make_site(receiving)
    anna = telegram.person()
    subscriber_id = await site.subscribe(anna)
    await settled(site.service)
    telegram.limits = Limits(per_bot_s=2, per_chat_s=1)

    for number in range(3):
        await site.post("/v1/send", subscriber_id=subscriber_id, text=f"No. {number}")

    await anna.wait_for("No. 2")
    numbers = [message.text for message in anna.messages if message.text.startswith("No. ")]
    assert numbers == ["No. 0", "No. 1", "No. 2"]


async def _refused(telegram: FakeTelegram, before: int, times: int) -> bool:
    """Whether so many calls were refused; the fake's faults come in the same order each time."""
    return sum(call.status in {429, 500} for call in telegram.calls[before:]) >= times


async def _taken(telegram: FakeTelegram) -> bool:
    return not len(telegram.bot.updates)


@every_way
async def test_a_message_is_edited_and_deleted(site: Site, telegram: FakeTelegram) -> None:
    anna = telegram.person()
    subscriber_id = await site.subscribe(anna)
    photo = {"type": "image", "url": telegram.host_file("cup.png", PNG, "image/png")}
    sent = await site.post("/v1/send", subscriber_id=subscriber_id, text="Ready at 6", media=photo)
    path = f"/v1/messages/{sent['message_id']}"
    shown = await anna.wait_for("Ready at 6")
    await settled(site.service)

    await site.post(f"{path}/edit", text="Ready at **7**", format="markdown")
    await anna.wait_until(lambda: shown.edits)
    await settled(site.service)
    edited = (await site.client.get(path)).json()
    deleted = await site.client.delete(path)
    await anna.wait_until(lambda: shown.message_id not in anna.chat.messages)
    await settled(site.service)

    assert (shown.text, shown.entities) == (
        "Ready at 7",
        [{"type": "bold", "offset": 9, "length": 1}],
    )
    assert (edited["text"], edited["error"]) == ("Ready at **7**", None)
    assert edited["edited_at"] is not None
    assert deleted.status_code == 202
    assert (await site.client.get(path)).json()["deleted_at"] is not None


@pytest.mark.parametrize("receiving", ["poll"])
async def test_what_telegram_does_not_delete_any_more_says_so(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person()
    sent = await site.post("/v1/send", subscriber_id=await site.subscribe(anna), text="Hi")
    path = f"/v1/messages/{sent['message_id']}"
    (await anna.wait_for("Hi")).old = True
    await settled(site.service)

    await site.client.delete(path)
    await settled(site.service)

    message = (await site.client.get(path)).json()
    assert message["error"].startswith("delete: Bad Request: message can't be deleted")
    assert message["deleted_at"] is None
