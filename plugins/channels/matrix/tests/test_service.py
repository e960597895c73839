"""A service whose bot is on a fake homeserver, on both databases."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.matrix import FakeMatrix, Person
from msgsvc_matrix import plugin


@dataclass
class Shop:
    """A project of a service that runs."""

    client: httpx2.AsyncClient
    homeserver: FakeMatrix

    async def event(self, name: str) -> dict[str, Any]:
        """The first event of that name, waited for."""

        async def there() -> list[dict[str, Any]]:
            answer = await self.client.get("/v1/events", params={"event": name})
            return [event["data"] for event in reversed(answer.json()["data"])]

        return (await until(there, interval_s=0.05))[0]

    async def subscribe(self, person: Person) -> str:
        """Has a person open a chat and write what the service shows them; the subscriber's id."""
        made = (await self.client.post("/v1/subscribers/links", json={})).json()
        await person.open(made["links"]["messenger_a"])
        await person.write(made["start_messages"]["messenger_a"])
        await reads(person, "subscribed")
        return str((await self.event("subscription.created"))["subscriber_id"])

    async def send(self, subscriber_id: str, text: str, **message: Any) -> str:
        body = {"subscriber_id": subscriber_id, "text": text, **message}
        answer = await self.client.post("/v1/send", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])


@pytest.fixture
async def shop(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    homeserver: FakeMatrix,
) -> Shop:
    bot = {**homeserver.settings, "per_bot_s": 1000, "per_chat_s": 1000}
    service = await make_service(
        extra_plugins=[("matrix", plugin), ("auth", auth)],
        use_clock=SystemClock(),
        channels={"messenger_a": bot},
    )

    async def ready() -> bool:
        return service.channels["messenger_a"].link("x") is not None

    await until(ready)
    return Shop((await make_tenant(service)).client, homeserver)


async def reads(person: Person, text: str) -> str:
    """The latest message with `text`, waited for."""

    async def found() -> str:
        return next((one.text for one in reversed(person.messages) if text in one.text), "")

    return await until(found, interval_s=0.02)


@pytest.mark.both_databases
async def test_who_leaves_an_earlier_chat_stays_subscribed(shop: Shop, ann: Person) -> None:
    subscriber_id = await shop.subscribe(ann)
    first = ann.room
    await shop.subscribe(ann)
    shop.homeserver.member(first, ann.user_id, "leave", ann.user_id)
    await shop.send(subscriber_id, "Still there")
    await reads(ann, "Still there")
    path = f"/v1/subscribers/{subscriber_id}"
    status = (await shop.client.get(path)).json()["status"]
    await ann.leave()
    deleted = await shop.event("subscription.deleted")

    assert status == "active"
    assert (deleted["subscriber_id"], deleted["reason"]) == (subscriber_id, "user_blocked_bot")


async def test_a_question_is_answered_by_its_number(shop: Shop, ann: Person) -> None:
    buttons = [[{"text": "Yes", "data": "y"}, {"text": "No", "data": "n"}]]
    message_id = await shop.send(await shop.subscribe(ann), "Coming?", buttons=buttons)
    asked = await reads(ann, "Coming?")
    await ann.write("2")
    clicked = await shop.event("button.clicked")

    assert "1 - Yes\n2 - No" in asked
    assert (clicked["message_id"], clicked["data"]) == (message_id, "n")


async def test_a_person_signs_in(shop: Shop, ann: Person) -> None:
    body = {"state": "cart-17", "lang": "en", "number_matching": True}
    session = (await shop.client.post("/v1/auth/session", json=body)).json()
    await ann.start(first=session["start_messages"]["messenger_a"])
    await reads(ann, "Sign in to")
    await ann.write(str(session["match_number"]))
    await reads(ann, "You are signed in")
    path = f"/v1/auth/session/{session['session_id']}/status"
    code = (await shop.client.get(path)).json()["code"]
    verified = (await shop.client.post("/v1/auth/verify", json={"code": code})).json()

    assert (verified["first_name"], verified["state"]) == ("Ann", "cart-17")


async def test_a_storm_loses_nothing_and_doubles_nothing(shop: Shop, ann: Person) -> None:
    subscriber_id = await shop.subscribe(ann)
    faults = shop.homeserver.faults
    faults.rate_429, faults.rate_lost = 0.2, 0.1
    sent = [await shop.send(subscriber_id, f"News {number}") for number in range(5)]

    async def settled() -> bool:
        statuses = [(await shop.client.get(f"/v1/messages/{one}")).json()["status"] for one in sent]
        return set(statuses) == {"sent"}

    await until(settled, interval_s=0.1, timeout_s=60)
    news = [one.text for one in ann.messages if one.text.startswith("News")]
    assert news == [f"News {number}" for number in range(5)]


@pytest.mark.both_databases
async def test_messages_follow_an_upgraded_room(
    shop: Shop, homeserver: FakeMatrix, ann: Person
) -> None:
    subscriber_id = await shop.subscribe(ann)
    await ann.upgrade()

    async def joined() -> bool:
        return ann.room.membership(homeserver.bot_id) == "join"

    await until(joined)
    await shop.send(subscriber_id, "Your parcel is here")

    assert await reads(ann, "parcel") == "Your parcel is here"
    left = await shop.client.get("/v1/events", params={"event": "subscription.deleted"})
    assert left.json()["data"] == []
