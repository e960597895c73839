"""A service whose bot is on Synapse: what people and sites do, end to end."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from aiohttp import web

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import Channel, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.updates import Blocked, MessageEdited, MessageReceived, Started
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.web_servers import stop
from msgsvc_matrix import plugin
from msgsvc_otp import plugin as otp
from tests.synapse.homeserver import PASSWORD, Homeserver, User

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32

#: So that nobody waits for a turn; the pace is the core's, and tested there.
AT_ONCE = {"per_bot_s": 1000, "per_chat_s": 1000}

MakeTenant = Callable[..., Awaitable[Tenant]]


@dataclass
class Shop:
    """A project of a service that runs."""

    service: Service
    client: httpx2.AsyncClient
    bot: User

    async def events(self, name: str) -> list[dict[str, Any]]:
        """The project's events of one name, oldest first."""
        answer = await self.client.get("/v1/events", params={"event": name})
        return [event["data"] for event in reversed(answer.json()["data"])]

    async def event(self, name: str, count: int = 1) -> dict[str, Any]:
        """The so-manieth event of that name, waited for."""

        async def there() -> list[dict[str, Any]]:
            found = await self.events(name)
            return found if len(found) >= count else []

        return (await until(there, interval_s=0.1))[count - 1]

    async def subscribe(self, person: User) -> str:
        """Has a person start the bot by what the service shows them; the subscriber's id."""
        before = len(await self.events("subscription.created"))
        made = (await self.client.post("/v1/subscribers/links", json={})).json()
        assert made["links"]["matrix"] == f"https://matrix.to/#/{self.bot.user_id}"
        await person.start(self.bot)
        await person.write(made["start_messages"]["matrix"])
        # It would end a question that is asked before it comes.
        await person.reads("subscribed")
        return str((await self.event("subscription.created", before + 1))["subscriber_id"])

    async def send(self, subscriber_id: str, text: str, **message: Any) -> str:
        body = {"subscriber_id": subscriber_id, "text": text, **message}
        answer = await self.client.post("/v1/send", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])

    async def reaches(self, message_id: str, status: str) -> None:
        async def reached() -> bool:
            message = (await self.client.get(f"/v1/messages/{message_id}")).json()
            return bool(message["status"] == status)

        await until(reached, interval_s=0.1)


MakeShop = Callable[..., Awaitable[Shop]]


@pytest.fixture
async def make_shop(make_service: ServiceFactory, make_tenant: MakeTenant) -> MakeShop:
    async def make(bot: User, **settings: Any) -> Shop:
        service = await make_service(
            extra_plugins=[("matrix", plugin), ("auth", auth), ("otp", otp)],
            use_clock=SystemClock(),
            channels={"matrix": {**_settings(bot), **AT_ONCE, **settings}},
            media={"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
        )

        async def ready() -> bool:
            return service.channels["matrix"].link("x") is not None

        await until(ready)
        return Shop(service, (await make_tenant(service)).client, bot)

    return make


@pytest.fixture
async def make_channel(make_service: ServiceFactory) -> AsyncIterator[Callable[..., Any]]:
    """Makes a channel of a service that is not started: nothing else polls for its bot."""
    channels: list[Channel] = []

    async def make(bot: User, **settings: Any) -> Channel:
        service = await make_service(
            start=False,
            extra_plugins=[("matrix", plugin)],
            use_clock=SystemClock(),
            channels={"matrix": {**_settings(bot), **settings}},
        )
        channels.append(service.channels["matrix"])
        return channels[-1]

    yield make
    for channel in channels:
        await channel.close()


@pytest.fixture
async def picture() -> AsyncIterator[str]:
    """The URL of a picture."""

    async def give(_request: web.Request) -> web.Response:
        return web.Response(body=PNG, content_type="image/png")

    app = web.Application()
    app.add_routes([web.get("/cat.png", give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site.port}/cat.png"
    await stop(runner)


async def test_a_person_signs_in(make_shop: MakeShop, bot: User, ann: User) -> None:
    shop = await make_shop(bot)
    body = {"state": "cart-17", "lang": "en", "number_matching": True}
    session = (await shop.client.post("/v1/auth/session", json=body)).json()
    await ann.start(bot)
    await ann.write(session["start_messages"]["matrix"])
    question = await ann.reads("Sign in to")
    await ann.write(str(session["match_number"]))
    await ann.reads("You are signed in")
    path = f"/v1/auth/session/{session['session_id']}/status"
    status = (await shop.client.get(path)).json()
    verified = await shop.client.post("/v1/auth/verify", json={"code": status["code"]})

    assert str(session["match_number"]) in question.text
    assert status["status"] == "confirmed"
    assert (verified.json()["first_name"], verified.json()["state"]) == ("Ann", "cart-17")


async def test_questions_are_answered_by_a_number_and_files_are_shown(
    make_shop: MakeShop, bot: User, ann: User, picture: str
) -> None:
    shop = await make_shop(bot)
    subscriber_id = await shop.subscribe(ann)
    buttons = [[{"text": "Yes", "data": "y"}, {"text": "No", "data": "n"}]]
    message_id = await shop.send(subscriber_id, "**Coming?**", format="markdown", buttons=buttons)
    asked = await ann.reads("Coming?")
    await ann.write("2")
    clicked = await shop.event("button.clicked")
    media = {"type": "image", "url": picture}
    await shop.send(subscriber_id, "A cat", media=media)
    cat = await ann.reads("A cat")

    assert "1 - Yes\n2 - No" in asked.text
    assert "<strong>Coming?</strong>" in asked.content["formatted_body"]
    assert (clicked["message_id"], clicked["data"]) == (message_id, "n")
    assert (cat.content["msgtype"], cat.content["filename"]) == ("m.image", "cat.png")
    assert await ann.download(cat.content["url"]) == PNG


async def test_a_one_time_code_is_sent_and_verified(
    make_shop: MakeShop, bot: User, ann: User
) -> None:
    shop = await make_shop(bot)
    subscriber_id = await shop.subscribe(ann)
    sent = await shop.client.post("/v1/otp/send", json={"subscriber_id": subscriber_id})
    assert sent.status_code == 202, sent.text
    shown = await ann.reads("code")
    code = re.search(r"\b(\d{6})\b", shown.text)
    assert code is not None, shown.text
    body = {"otp_id": sent.json()["otp_id"], "code": code[1]}
    verified = await shop.client.post("/v1/otp/verify", json=body)

    assert verified.status_code == 200, verified.text


async def test_a_message_is_edited_and_deleted_with_its_edits(
    make_shop: MakeShop, bot: User, ann: User
) -> None:
    shop = await make_shop(bot)
    subscriber_id = await shop.subscribe(ann)
    message_id = await shop.send(subscriber_id, "Lunch at noon")
    shown = await ann.reads("Lunch at noon")
    await shop.reaches(message_id, "sent")
    await shop.client.post(f"/v1/messages/{message_id}/edit", json={"text": "Lunch at one"})
    edited = await ann.reads("Lunch at one")
    await shop.client.delete(f"/v1/messages/{message_id}")

    async def gone() -> bool:
        texts = [str(event["content"].get("body")) for event in await ann.events()]
        return not any("Lunch" in text for text in texts)

    await until(gone, interval_s=0.1)
    assert (edited.event_id, edited.edited) == (shown.event_id, True)


async def test_who_leaves_is_unsubscribed_unless_they_have_another_chat(
    make_shop: MakeShop, bot: User, ann: User
) -> None:
    shop = await make_shop(bot)
    subscriber_id = await shop.subscribe(ann)
    first = ann.room_id
    made = (await shop.client.post("/v1/subscribers/links", json={})).json()
    await ann.start(bot)
    await ann.write(made["start_messages"]["matrix"])
    await ann.reads("subscribed")
    second, ann.room_id = ann.room_id, first
    await ann.change_room("leave")
    ann.room_id = second
    await shop.send(subscriber_id, "Still there")
    await ann.reads("Still there")
    before = await shop.events("subscription.deleted")
    await ann.change_room("leave")
    deleted = await shop.event("subscription.deleted")

    assert before == []
    assert (deleted["subscriber_id"], deleted["reason"]) == (subscriber_id, "user_blocked_bot")


async def test_two_projects_share_a_bot(
    make_shop: MakeShop, make_tenant: MakeTenant, bot: User, ann: User
) -> None:
    shop = await make_shop(bot)
    other = Shop(shop.service, (await make_tenant(shop.service, name="Cafe")).client, bot)
    await shop.send(await shop.subscribe(ann), "From the shop")
    await ann.reads("From the shop")
    await other.send(await other.subscribe(ann), "From the cafe")

    await ann.reads("From the cafe")


async def test_the_homeservers_limit_is_kept_and_nothing_lost(
    make_shop: MakeShop, synapse: Homeserver, ann: User
) -> None:
    bot = await synapse.user("slow", limited=True)
    shop = await make_shop(bot)
    subscriber_id = await shop.subscribe(ann)
    sent = [await shop.send(subscriber_id, f"News {number}") for number in range(5)]
    for message_id in sent:
        await shop.reaches(message_id, "sent")

    texts = [said.text for said in await ann.messages() if said.text.startswith("News")]
    assert texts == [f"News {number}" for number in range(5)]


async def test_a_refusal_for_too_many_messages_says_how_long_to_wait(
    make_channel: Callable[..., Any], synapse: Homeserver, ann: User
) -> None:
    bot = await synapse.user("slow", limited=True)
    channel = await make_channel(bot)
    await ann.start(bot)
    await channel.poll_updates(None)
    with pytest.raises(DeliveryError) as refused:
        for number in range(10):
            await channel.send(ann.room_id, OutgoingMessage("Hi", key=f"limit-{number}"))

    assert refused.value.reason is Reason.RATE_LIMITED
    assert 0 < (refused.value.retry_after_s or 0) <= 5


async def test_what_is_written_while_the_bot_is_away_comes_whole_and_in_order(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot)
    cursor = await _drained(channel, None, Started)
    texts = [f"text {number}" for number in range(70)]
    for text in texts:
        last = await ann.write(text)
    await ann.edit(last, "text 69, changed")
    successor = await make_channel(bot)
    polled = await successor.poll_updates(cursor)
    again = await channel.poll_updates(cursor)

    assert [one.text for one in polled.updates if isinstance(one, MessageReceived)] == texts
    assert [one.message_ref for one in polled.updates if isinstance(one, MessageEdited)] == [last]
    assert again.updates == polled.updates


async def test_what_is_written_before_the_bot_joins_is_taken_after_the_start(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot)
    await ann.write("start 4F7K2M9Q")
    first = await channel.poll_updates(None)
    second = await channel.poll_updates(first.cursor)

    assert first.updates == ()
    assert [type(one) for one in second.updates] == [Started, MessageReceived]


async def test_a_message_that_is_taken_back_loses_its_text(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot)
    cursor = await _drained(channel, None, Started)
    written = await ann.write("My password is 1234")
    cursor = await _drained(channel, cursor, MessageReceived)
    await ann.call("PUT", f"rooms/{ann.room_id}/redact/{written}/r1", {})
    [taken_back] = (await channel.poll_updates(cursor)).updates

    assert isinstance(taken_back, MessageEdited)
    assert (taken_back.message_ref, taken_back.text) == (written, "")


async def test_groups_are_declined_and_ignored(
    make_channel: Callable[..., Any], synapse: Homeserver, bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot, direct=False)
    cursor = (await channel.poll_updates(None)).cursor
    [*_, last] = [one for one in await ann.events() if one.get("state_key") == bot.user_id]
    await ann.start(bot)
    cursor = await _drained(channel, cursor, Started)
    eve = await synapse.user("eve")
    await ann.change_room("invite", {"user_id": eve.user_id})
    eve.room_id = ann.room_id
    await eve.change_room("join")
    await eve.write("yes")
    polled = await channel.poll_updates(cursor)

    assert last["content"]["membership"] == "leave"
    assert polled.updates == ()
    assert channel.is_group(ann.room_id)


async def test_an_encrypted_chat_is_told_so_and_left(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot, encrypted=True)
    polled = await channel.poll_updates(None)
    polled = await channel.poll_updates(polled.cursor)
    members = [one for one in await ann.events() if one.get("state_key") == bot.user_id]

    assert polled.updates == ()
    assert "can't read encrypted" in (await ann.messages())[-1].text
    assert members[-1]["content"]["membership"] == "leave"


async def test_a_bot_that_is_removed_is_told_and_can_not_send(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot, trusted=False)
    cursor = await _drained(channel, None, Started)
    await ann.change_room("kick", {"user_id": bot.user_id})
    polled = await channel.poll_updates(cursor)
    with pytest.raises(DeliveryError) as refused:
        await channel.send(ann.room_id, OutgoingMessage("Hi", key="k1"))
    with pytest.raises(DeliveryError) as unknown:
        await channel.send("!nowhere:matrix.example", OutgoingMessage("Hi", key="k2"))

    assert [type(one) for one in polled.updates] == [Blocked]
    assert refused.value.reason is Reason.USER_BLOCKED_BOT
    assert unknown.value.reason is Reason.CHAT_NOT_FOUND


async def test_a_chat_that_the_person_has_left_is_not_found(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    channel = await make_channel(bot)
    await ann.start(bot)
    await _drained(channel, None, Started)
    await ann.change_room("leave")
    with pytest.raises(DeliveryError) as refused:
        await channel.send(ann.room_id, OutgoingMessage("Hi", key="k1"))

    assert refused.value.reason is Reason.CHAT_NOT_FOUND


async def test_the_same_key_is_one_message_also_after_another_login(
    make_channel: Callable[..., Any], bot: User, ann: User
) -> None:
    by_password = {"user": bot.user_id, "token": PASSWORD}
    channel, successor = [await make_channel(bot, **by_password) for _ in range(2)]
    await ann.start(bot)
    await _drained(channel, None, Started)
    message = OutgoingMessage("Once", key="the-same")
    sent = await asyncio.gather(*(one.send(ann.room_id, message) for one in (channel, successor)))
    await asyncio.sleep(0)

    assert sent[0] == sent[1]
    assert [said.text for said in await ann.messages()] == ["Once"]
    assert (await channel.check()).account == bot.user_id


async def _drained(channel: Channel, cursor: str | None, wanted: type) -> str | None:
    """Polls until an update of that type has come; the cursor behind it."""
    while True:
        polled = await channel.poll_updates(cursor)
        cursor = polled.cursor
        if any(isinstance(one, wanted) for one in polled.updates):
            return cursor


def _settings(bot: User) -> dict[str, Any]:
    return {"plugin": "matrix", "homeserver_url": bot.homeserver.url, "token": bot.token}
