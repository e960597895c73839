"""The whole way over real HTTP: a service, its API, and people on the fake platform."""

from typing import Any

import httpx2
import pytest

from msgsvc_devkit import until
from msgsvc_devkit.platforms.max import FakeMax, Person

from .conftest import SETUPS, MediaHost, Shop

pytestmark = pytest.mark.parametrize(
    ("backend", "runner", "receiving"), SETUPS, indirect=["backend", "runner"]
)


async def test_a_person_signs_in(shop: Shop, platform: FakeMax) -> None:
    ann = platform.person("Ann", username="ann", locale="ru")
    answer = await shop.client.post("/v1/auth/session", json={"state": "xyz"})
    session = answer.json()

    await ann.open(session["links"]["messenger_a"])
    question = await ann.wait_for("Войти", button="Да")
    await ann.press("Да")
    completed = await shop.event("auth.completed")
    answer = await shop.client.get(f"/v1/auth/session/{session['session_id']}/status")
    status = answer.json()

    assert status["status"] == "confirmed"
    assert status["code"]
    assert (completed["state"], completed["channel"]) == ("xyz", "messenger_a")
    await until(lambda: _edited(ann, question.mid))
    await until(lambda: _answered(ann))


async def test_a_message_with_buttons_and_a_picture_is_seen_and_clicked(
    shop: Shop, platform: FakeMax, media_host: MediaHost
) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)

    message_id = await shop.send(
        subscriber_id,
        "<b>Lunch</b> at 12 & 1?",
        format="html",
        media={"type": "image", "url": f"{media_host.url}/p.png"},
        buttons=[
            [{"text": "At 12", "data": "lunch:12"}],
            [{"text": "Menu", "url": "https://x.example"}],
        ],
    )
    shown = await ann.wait_for("Lunch at 12 & 1?", button="At 12")
    delivered = await shop.event("delivery.success")
    await ann.press("At 12")
    click = await shop.event("button.clicked")

    assert (shown.media, len(shown.buttons)) == ("image", 2)
    assert shown.markup[0]["type"] == "strong"
    assert (click["message_id"], click["data"], click["text"]) == (message_id, "lunch:12", "At 12")
    assert delivered["message_id"] == message_id


async def test_who_stops_the_bot_is_unsubscribed(shop: Shop, platform: FakeMax) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)

    await ann.remove_dialog()
    deleted = await shop.event("subscription.deleted")

    assert deleted["subscriber_id"] == subscriber_id


async def test_a_message_to_who_stopped_the_bot_unnoticed_fails_for_that_reason(
    shop: Shop, platform: FakeMax
) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    platform.updates.tell = lambda update: None  # type: ignore[method-assign] - gets lost
    await ann.block()

    await shop.send(subscriber_id, "Are you there?")
    failed = await shop.event("delivery.failed")
    deleted = await shop.event("subscription.deleted")

    assert (failed["reason"], failed["should_unsubscribe"]) == ("user_blocked_bot", True)
    assert deleted["subscriber_id"] == subscriber_id


async def test_an_update_that_comes_five_times_has_one_effect(
    shop: Shop, platform: FakeMax
) -> None:
    platform.updates.repeats = 5
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    await shop.send(subscriber_id, "Vote", buttons=[[{"text": "For", "data": "vote:1"}]])
    await shop.event("delivery.success")
    platform.updates.webhook_answers.clear()

    await ann.press("For")
    await shop.event("button.clicked")
    await ann.write("Marks that all five have come")
    await until(lambda: _told(shop, 10))

    assert len(await shop.events("button.clicked")) == 1
    assert len(await shop.events("subscription.created")) == 1


async def test_a_storm_of_429_passes_and_everything_arrives(shop: Shop, platform: FakeMax) -> None:
    people = [platform.person(f"P{number}") for number in range(8)]
    ids = [await shop.subscribe(person) for person in people]
    platform.faults.rate_429, platform.faults.rate_5xx = 0.5, 0.1
    platform.faults.retry_after_s = 0.2

    for number in range(3):
        for subscriber_id in ids:
            await shop.send(subscriber_id, f"News {number}")

    async def all_settled() -> bool:
        sent = len(await shop.events("delivery.success"))
        return sent + len(await shop.events("delivery.failed")) == 24

    await until(all_settled, interval_s=0.2)
    assert await shop.events("delivery.failed") == []
    for person in people:
        news = [message.text for message in person.messages if message.text.startswith("News")]
        assert sorted(news) == ["News 0", "News 1", "News 2"]
    statuses = [call.status for call in platform.calls_of("POST /messages")]
    assert statuses.count(429) > 5


async def test_a_call_without_the_secret_has_no_effect(shop: Shop, platform: FakeMax) -> None:
    ann = platform.person("Ann")
    answer = await shop.client.post("/v1/subscribers/links", json={})
    payload = answer.json()["links"]["messenger_a"].partition("start=")[2]
    forged = {
        "update_type": "bot_started",
        "timestamp": 1,
        "chat_id": ann.chat_id,
        "user": ann.profile.to_wire(),
        "payload": payload,
    }
    async with httpx2.AsyncClient() as stranger:
        statuses = [
            (await stranger.post(shop.hook, json=forged, headers=headers)).status_code
            for headers in ({}, {"X-Max-Bot-Api-Secret": "5ec2e7" * 10})
        ]

    assert statuses == [401, 401]
    # What comes after it is taken, so it would have been too.
    await shop.subscribe(platform.person("Bob"))
    assert len(await shop.events("subscription.created")) == 1


async def test_broken_updates_stop_nothing(shop: Shop, platform: FakeMax) -> None:
    user = {"user_id": 1, "first_name": "\0\ud83d", "is_bot": False}
    start = {"update_type": "bot_started", "timestamp": 1, "chat_id": 2, "user": user}
    broken: list[dict[str, Any]] = [
        {**start, "chat_id": "2"},
        {**start, "user": {"user_id": 10**400}},
        {**start, "payload": {"deep": [[[1]]]}},
        {**start, "timestamp": None},
        {"update_type": "message_created", "timestamp": 1, "message": {"body": None}},
        {"update_type": "message_callback", "timestamp": 1, "callback": []},
        start,
    ]

    for update in broken:
        platform.updates.tell(update)
    ann = platform.person("Ann")

    assert await shop.subscribe(ann)
    assert all(status == 200 for status in platform.updates.webhook_answers)


async def test_a_message_is_edited_with_another_file_and_deleted(
    shop: Shop, platform: FakeMax, media_host: MediaHost
) -> None:
    ann = platform.person("Ann")
    message_id = await shop.send(
        await shop.subscribe(ann),
        "Lunch at 12",
        media={"type": "image", "url": f"{media_host.url}/p.png"},
    )
    shown = await ann.wait_for("Lunch at 12")
    path = f"/v1/messages/{message_id}"
    await shop.status(message_id, "sent")

    video = {"type": "video", "url": f"{media_host.url}/v.mp4"}
    for body in ({"text": "Lunch at 1"}, {"media": video}):
        answer = await shop.client.post(f"{path}/edit", json=body)
        assert answer.status_code == 202, answer.text
    await until(lambda: _shows(ann, shown.mid, "Lunch at 1", "video"))
    await shop.client.delete(path)

    await until(lambda: _is_gone(ann, shown.mid))


async def _shows(person: Person, mid: str, text: str, media: str) -> bool:
    return any((one.mid, one.text, one.media) == (mid, text, media) for one in person.messages)


async def _is_gone(person: Person, mid: str) -> bool:
    return all(one.mid != mid for one in person.messages)


async def _edited(person: Person, mid: str) -> bool:
    return any(one.edited and one.mid == mid for one in person.messages)


async def _answered(person: Person) -> bool:
    return bool(person.notices)


async def _told(shop: Shop, count: int) -> bool:
    """Whether the platform has been answered for so many updates since they were counted."""
    if shop.platform.updates.subscriptions:
        return len(shop.platform.updates.webhook_answers) >= count
    polls = shop.platform.calls_of("GET /updates")
    last = int(polls[-1].query.get("marker", "0")) if polls else 0
    return last >= shop.platform.updates.next_marker
