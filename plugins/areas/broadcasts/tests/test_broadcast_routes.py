"""Broadcasts by a route: one message for each person, by the first channel that works."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelHealth, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.db import Database
from msgsvc_core.mailings import route_watch, store
from msgsvc_core.mailings.models import LockedShard
from msgsvc_core.mailings.service import WATCH_JOB, WATCH_S
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, add, counts, ended, events, give, recipients, shown, take

pytestmark = pytest.mark.both_databases

CHANNELS = ("messenger_a", "messenger_b", "messenger_c")


class Town:
    """People on three channels, and routes over them."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        self.service, self.tenant, self.client = service, tenant, tenant.client
        self._routes = 0

    def channel(self, letter: str) -> RecordingChannel:
        found = self.service.channels[f"messenger_{letter}"]
        assert isinstance(found, RecordingChannel)
        return found

    async def people(self, letters: str, numbers: Sequence[int], **fields: Any) -> None:
        """The people of these numbers come to the channels with these letters."""
        for letter in letters:
            for number in numbers:
                await add(
                    self.service,
                    self.tenant,
                    1,
                    first=number,
                    channel=f"messenger_{letter}",
                    external_id=f"person-{number}",
                    **fields,
                )

    async def route(self, *steps: dict[str, Any], letters: str = "abc") -> str:
        self._routes += 1
        given = [
            {"channel": f"messenger_{letter}", **step}
            for letter, step in zip(letters, steps or [{}] * len(letters), strict=True)
        ]
        body = {"name": f"Route {self._routes}", "steps": given}
        answer = await self.client.post("/v1/routes", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["route_id"])

    def reached(self) -> dict[str, list[str]]:
        """Who got it on which channel."""
        return {
            letter: sorted(sent.chat_id.removeprefix("chat-") for sent in self.channel(letter).sent)
            for letter in "abc"
        }

    def refuse(self, letter: str, *chats: str, reason: Reason = Reason.INVALID_MESSAGE) -> None:
        """A channel refuses to write to these chats, or to any if none is named."""
        channel = self.channel(letter)
        send = channel.send

        async def refusing(chat_id: str, message: OutgoingMessage) -> str:
            if not chats or chat_id.removeprefix("chat-") in chats:
                raise DeliveryError(reason, "no such thing")
            return await send(chat_id, message)

        channel.send = refusing  # type: ignore[method-assign] # some chats alone


async def by_channel(client: httpx2.AsyncClient, job_id: str) -> list[tuple[int, ...]]:
    """Of each channel of the route: sent, failed, skipped and total."""
    found = (await client.get(f"/v1/broadcast/{job_id}/channels")).json()["channels"]
    assert [each["channel"] for each in found] == list(CHANNELS[: len(found)])
    return [counts(each) for each in found]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    channels = {name: {"plugin": "recording"} for name in CHANNELS}
    return await make_service(extra_plugins=PLUGINS, limits=LIMITS, channels=channels)


@pytest.fixture
def town(service: Service, tenant: Tenant) -> Town:
    return Town(service, tenant)


async def test_each_person_gets_it_once_by_the_first_channel_that_they_have(town: Town) -> None:
    await town.people("ab", [1, 2])
    await town.people("bc", [3])
    await town.people("c", [4])
    await add(town.service, town.tenant, 1, first=5, channel="messenger_b")
    route = await town.route()

    answer = await town.client.post(
        "/v1/broadcast",
        json={"audience": {"all": True}, "route_id": route, "text": "Hi", "dry_run": True},
    )
    job_id = await take(town.client, route_id=route)
    done = await ended(town.client, job_id)
    await settled(town.service)

    assert answer.json()["total"] == 5
    assert town.reached() == {"a": ["1", "2"], "b": ["3", "5"], "c": ["4"]}
    assert (counts(done), done["route_id"]) == ((5, 0, 0, 5), route)
    listed = await recipients(town.client, job_id)
    assert {(each["channel"], each["status"]) for each in listed} == {
        ("messenger_a", "sent"),
        ("messenger_b", "sent"),
        ("messenger_c", "sent"),
    }
    assert len(listed) == 5
    assert len(await events(town.client, "delivery.success")) == 5
    assert await by_channel(town.client, job_id) == [(2, 0, 0, 2), (2, 0, 0, 2), (1, 0, 0, 1)]


async def test_whom_a_channel_does_not_reach_gets_it_by_the_next_one(town: Town) -> None:
    await town.people("abc", [1, 2, 3])
    town.refuse("a", "2", "3")
    town.refuse("b", "3", reason=Reason.USER_BLOCKED_BOT)
    route = await town.route()

    job_id = await take(town.client, route_id=route)
    done = await ended(town.client, job_id)
    await settled(town.service)

    assert town.reached() == {"a": ["1"], "b": ["2"], "c": ["3"]}
    assert counts(done) == (3, 0, 0, 3)
    assert await by_channel(town.client, job_id) == [(1, 0, 0, 1)] * 3
    messages = (await town.client.get("/v1/messages")).json()["data"]
    assert len(messages) == 3
    last = next(each for each in messages if each["channel"] == "messenger_c")
    last = (await town.client.get(f"/v1/messages/{last['message_id']}")).json()
    past = [(each["channel"], each["status"], each["reason"]) for each in last["past_steps"]]
    assert past == [
        ("messenger_a", "failed", "invalid_message"),
        ("messenger_b", "failed", "user_blocked_bot"),
        ("messenger_c", "sent", None),
    ]
    assert (last["route_id"], last["job_id"]) == (route, job_id)
    # Whoever has blocked a bot is unsubscribed there, and stays so.
    blocked = (await town.client.get("/v1/subscribers/sub_b0000003")).json()
    assert blocked["status"] == "blocked"


async def test_who_is_reached_by_no_channel_has_failed_with_the_reasons_of_all(town: Town) -> None:
    await town.people("ab", [1])
    town.refuse("a")
    town.refuse("b")
    route = await town.route()

    job_id = await take(town.client, route_id=route)
    done = await ended(town.client, job_id)

    assert counts(done) == (0, 1, 0, 1)
    [recipient] = await recipients(town.client, job_id, status="failed")
    assert (recipient["subscriber_id"], recipient["reason"]) == ("sub_b0000001", "invalid_message")
    assert recipient["error"] == "messenger_a: no such thing; messenger_b: no such thing"
    [event] = await events(town.client, "delivery.failed")
    assert event["subscriber_id"] == "sub_b0000001"


async def test_a_person_is_meant_by_any_subscriber_and_left_out_by_any(town: Town) -> None:
    await town.people("ab", [1, 2, 3])
    await give(town.service, town.tenant, "vip", ["sub_b0000001", "sub_a0000002", "sub_a0000003"])
    await give(town.service, town.tenant, "staff", ["sub_b0000003"])
    route = await town.route()

    audience = {"tags_any": ["vip"], "tags_none": ["staff"]}
    done = await ended(town.client, await take(town.client, route_id=route, audience=audience))

    assert town.reached() == {"a": ["1", "2"], "b": [], "c": []}
    assert counts(done) == (2, 0, 0, 2)


async def test_who_has_left_one_channel_is_reached_by_another(town: Town) -> None:
    await town.people("a", [1], status="blocked")
    await town.people("b", [1])
    await town.people("a", [2], status="unsubscribed")
    route = await town.route()

    audience = {"subscriber_ids": ["sub_a0000001", "sub_a0000002"]}
    done = await ended(town.client, await take(town.client, route_id=route, audience=audience))

    assert town.reached() == {"a": [], "b": ["1"], "c": []}
    assert counts(done) == (1, 0, 0, 1)


async def test_a_step_outside_its_hours_is_passed_over(town: Town, clock: FakeClock) -> None:
    await town.people("ab", [1])
    await town.people("a", [2])
    hour = clock.now_ms() // 3_600_000
    hours = {"from": f"{(hour + 2) % 24:02}:00", "to": f"{(hour + 3) % 24:02}:00"}
    route = await town.route({"hours": hours}, {}, letters="ab")

    job_id = await take(town.client, route_id=route)
    done = await ended(town.client, job_id)

    assert town.reached() == {"a": [], "b": ["1"], "c": []}
    assert counts(done) == (1, 0, 1, 2)
    [skipped] = await recipients(town.client, job_id, status="skipped")
    assert skipped["error"] == "outside the hours of its step"


async def test_patience_with_a_channel_that_asks_to_wait_ends(town: Town) -> None:
    await town.people("ab", [1])
    wait = DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=300, scope="chat")
    town.channel("a").failures = [wait]
    route = await town.route({"within_seconds": 60}, {}, letters="ab")

    done = await ended(town.client, await take(town.client, route_id=route))

    assert town.reached() == {"a": [], "b": ["1"], "c": []}
    assert counts(done) == (1, 0, 0, 1)


@pytest.mark.parametrize(("on_unknown", "expected"), [("stop", []), ("continue", ["1"])])
async def test_an_unknown_outcome_goes_on_only_if_the_step_says_so(
    town: Town, on_unknown: str, expected: list[str]
) -> None:
    await town.people("ab", [1])
    lost = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)
    town.channel("a").failures = [lost]
    route = await town.route({"on_unknown": on_unknown}, {}, letters="ab")

    done = await ended(town.client, await take(town.client, route_id=route))

    assert town.reached()["b"] == expected
    assert (done["sent"], done["unknown"]) == (len(expected), 1 - len(expected))


async def test_a_pause_stops_those_who_are_to_go_on_too(town: Town) -> None:
    await town.people("ab", range(30))
    town.refuse("a")
    route = await town.route(letters="ab")
    job_id = await take(town.client, route_id=route, messages_per_minute=60)
    answer = await town.client.post(f"/v1/broadcast/{job_id}/pause")
    assert answer.status_code == 200, answer.text
    await settled(town.service)
    before = town.reached()["b"]

    await settled(town.service)
    paused = await shown(town.client, job_id)
    await town.client.post(f"/v1/broadcast/{job_id}/cancel")
    done = await ended(town.client, job_id)

    assert town.reached()["b"] == before
    assert paused["sent"] + paused["failed"] == len(before)
    assert counts(done) == (len(before), 0, 30 - len(before), 30)


async def test_nobody_waits_for_a_stopped_bot_who_has_another(town: Town, clock: FakeClock) -> None:
    await town.people("ab", range(5))
    await town.people("a", [7])
    banned = DeliveryError(Reason.BOT_BANNED, "Unauthorized")
    town.channel("a").failures = [banned] * 20
    route = await town.route(letters="ab")

    job_id = await take(town.client, route_id=route)
    await settled(town.service)
    clock.advance(WATCH_S)
    await settled(town.service)
    waiting = await shown(town.client, job_id)

    assert town.reached() == {"a": [], "b": ["0", "1", "2", "3", "4"], "c": []}
    # Who has no other channel waits for the bot, as without a route.
    assert (counts(waiting), waiting["status"]) == ((5, 0, 0, 6), "running")


async def test_people_go_on_from_a_channel_that_has_made_no_calls_for_long(
    town: Town, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.people("ab", range(5))
    await town.people("a", [7])
    channel = town.channel("a")

    async def check() -> ChannelHealth:
        return ChannelHealth(False, "away")

    monkeypatch.setattr(channel, "check", check)
    async with town.service.db.transaction() as tx:
        await town.service.get(ChannelOutages).start(tx, channel, "away")
    town.service.get(OutboundGates).outage_changed(channel.key)
    # Without `within_seconds`, people wait for the messenger for as long as a message may.
    route = await town.route(letters="ab")
    job_id = await take(town.client, route_id=route)
    await settled(town.service)
    clock.advance(23 * 3600)
    await settled(town.service)
    waiting = town.reached()
    clock.advance(3600 + 31)
    await settled(town.service)
    done = await shown(town.client, job_id)

    assert waiting == {"a": [], "b": [], "c": []}
    assert town.reached() == {"a": [], "b": ["0", "1", "2", "3", "4"], "c": []}
    assert (done["status"], counts(done)) == ("completed", (5, 1, 0, 6))
    [failed] = await recipients(town.client, job_id, status="failed")
    assert failed["reason"] == "platform_unavailable"


async def test_nobody_waits_for_a_bot_whose_messenger_asks_for_more_time_than_the_step_has(
    town: Town, clock: FakeClock
) -> None:
    await town.people("ab", range(5))
    await town.people("a", [7])
    wait = DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=300)
    town.channel("a").failures = [wait] * 20
    route = await town.route({"within_seconds": 10}, {}, letters="ab")

    job_id = await take(town.client, route_id=route)
    await settled(town.service)
    clock.advance(WATCH_S)
    await settled(town.service)
    waiting = await shown(town.client, job_id)

    assert town.reached() == {"a": [], "b": ["0", "1", "2", "3", "4"], "c": []}
    # The one who has no other channel waits for the bot, as without a route.
    assert (counts(waiting), waiting["status"]) == ((5, 0, 0, 6), "running")


async def test_a_bot_that_is_asked_to_wait_for_less_than_the_step_has_is_waited_for(
    town: Town, clock: FakeClock
) -> None:
    await town.people("ab", range(5))
    wait = DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=8)
    town.channel("a").failures = [wait]
    route = await town.route({"within_seconds": 60}, {}, letters="ab")

    await take(town.client, route_id=route)
    await settled(town.service)
    clock.advance(WATCH_S)
    await settled(town.service)
    clock.advance(WATCH_S)
    await settled(town.service)

    assert town.reached()["b"] == []
    assert len(town.reached()["a"]) == 5


async def test_a_variant_goes_along_with_the_person(town: Town) -> None:
    await town.people("ab", range(20))
    town.refuse("a")
    route = await town.route(letters="ab")
    body = {
        "audience": {"all": True},
        "route_id": route,
        "variants": [{"text": "A"}, {"text": "B"}],
        "experiment": {"share_percent": 100},
    }
    answer = await town.client.post("/v1/broadcast", json=body)
    job_id = answer.json()["job_id"]
    done = await ended(town.client, job_id)

    assert counts(done) == (20, 0, 0, 20)
    texts = [sent.message.text for sent in town.channel("b").sent]
    assert (texts.count("A"), texts.count("B")) == (10, 10)
    variants = (await town.client.get(f"/v1/broadcast/{job_id}/variants")).json()["variants"]
    assert [(each["sent"], each["total"]) for each in variants] == [(10, 10), (10, 10)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"audience": {"channels": ["messenger_a"]}}, "audience.channels"),
        ({"route_id": "waits"}, "route_id"),
    ],
)
async def test_what_an_audience_can_not_go_by_is_refused(
    town: Town, body: dict[str, Any], field: str
) -> None:
    waits = await town.route({"until": "answered", "within_seconds": 60}, {}, letters="ab")
    plain = await town.route()
    route = waits if body.get("route_id") == "waits" else plain

    answer = await town.client.post(
        "/v1/broadcast", json={"audience": {"all": True}, "text": "Hi", **body, "route_id": route}
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(f"{field}: ")


async def test_an_unknown_route_is_named(client: httpx2.AsyncClient) -> None:
    answer = await client.post(
        "/v1/broadcast", json={"audience": {"all": True}, "text": "Hi", "route_id": "rte_none"}
    )

    assert answer.status_code == 404
    assert answer.json()["error"].startswith("route_id: ")


async def has_lock_waiters(db: Database) -> bool:
    """Whether a statement waits for a lock of another transaction. SQLite has one writer at a time."""
    async with db.read() as tx:
        if tx.dialect == "sqlite":
            return True
        return bool(
            await tx.fetch_val(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock'"
            )
        )


async def test_whoever_waits_for_a_mailing_sees_whom_the_holder_has_just_claimed(
    town: Town,
) -> None:
    await town.people("ab", range(3))
    job_id = await take(town.client, route_id=await town.route(letters="ab"))
    await ended(town.client, job_id)
    db, key = town.service.db, (town.tenant.project.project_id, job_id)

    async def look() -> LockedShard | None:
        async with db.transaction() as tx:
            return await store.lock_shard(tx, *key, "messenger_a")

    async with db.transaction() as tx:
        locked = await store.lock_shard(tx, *key, "messenger_a")
        assert locked is not None
        looking = asyncio.create_task(look())
        await until(lambda: has_lock_waiters(db))
        claimed = replace(locked.shard, in_flight=["sub_a0000001"])
        await store.set_shard(tx, *key, claimed)
    seen = await looking

    assert seen is not None
    assert seen.shard == claimed


async def test_a_resume_during_a_look_leaves_the_mailing_with_its_watch(
    town: Town, clock: FakeClock
) -> None:
    await town.people("ab", range(3))
    town.channel("a").failures = [DeliveryError(Reason.BOT_BANNED, "Unauthorized")] * 20
    town.channel("b").failures = [DeliveryError(Reason.BOT_BANNED, "Unauthorized")] * 20
    job_id = await take(town.client, route_id=await town.route(letters="ab"))
    await settled(town.service)
    answer = await town.client.post(f"/v1/broadcast/{job_id}/pause")
    assert answer.status_code == 200, answer.text
    db, jobs = town.service.db, town.service.jobs

    async def has_watch() -> bool:
        async with db.read() as tx:
            return await jobs.has_open(tx, WATCH_JOB, job_id)

    assert await has_watch()

    async def has_come() -> bool:
        return await has_lock_waiters(db) or not await has_watch()

    async with db.transaction() as tx:
        await town.service.mailings.resume(tx, town.tenant.project.project_id, job_id)
        clock.advance(WATCH_S)
        await until(has_come)
    await settled(town.service)

    assert await has_watch()


async def test_who_has_no_other_channel_waits_longer_than_the_patience(
    town: Town, clock: FakeClock
) -> None:
    await town.people("a", [1])
    await town.people("ab", [2])
    wait = DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=61, scope="chat")
    town.channel("a").failures = [wait, wait]
    route = await town.route({"within_seconds": 60}, {}, letters="ab")
    job_id = await take(town.client, route_id=route)
    await settled(town.service)
    waiting = await shown(town.client, job_id)
    clock.advance(62)
    done = await ended(town.client, job_id)

    assert counts(waiting) == (1, 0, 0, 2)
    assert town.reached() == {"a": ["1"], "b": ["2"], "c": []}
    assert counts(done) == (2, 0, 0, 2)


async def test_after_a_cancel_nobody_goes_on_and_what_may_have_arrived_is_told(town: Town) -> None:
    await town.people("ab", [1])
    job: dict[str, str] = {}

    async def cancelled(chat_id: str, message: OutgoingMessage) -> str:
        answer = await town.client.post(f"/v1/broadcast/{job['id']}/cancel")
        assert answer.is_success, answer.text
        raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)

    town.channel("a").send = cancelled  # type: ignore[method-assign] # a cancel meanwhile
    route = await town.route({"on_unknown": "continue"}, {}, letters="ab")
    job["id"] = await take(town.client, route_id=route)
    done = await ended(town.client, job["id"])
    await settled(town.service)

    assert town.reached()["b"] == []
    assert (counts(done), done["unknown"]) == ((0, 1, 0, 1), 1)
    [recipient] = await recipients(town.client, job["id"])
    assert (recipient["channel"], recipient["status"]) == ("messenger_a", "unknown")
    assert len(await events(town.client, "delivery.failed")) == 1


async def test_who_moves_to_a_channel_is_called_although_its_others_wait(
    town: Town, clock: FakeClock
) -> None:
    await town.people("b", [7])
    await town.people("ab", [1])
    slow = {
        after_s: DeliveryError(Reason.RATE_LIMITED, "slow", retry_after_s=after_s, scope="chat")
        for after_s in (30, 900)
    }
    town.channel("b").failures = [slow[900]]
    town.channel("a").failures = [slow[30], DeliveryError(Reason.INVALID_MESSAGE, "no")]
    job_id = await take(town.client, route_id=await town.route(letters="ab"))
    await settled(town.service)
    before = town.reached()["b"]
    clock.advance(31)
    await settled(town.service)

    assert (before, town.reached()["b"]) == ([], ["1"])
    assert counts(await shown(town.client, job_id)) == (1, 0, 0, 2)


async def test_the_time_of_a_later_step_begins_with_its_first_attempt(
    town: Town, clock: FakeClock
) -> None:
    await town.people("abc", [1])
    town.refuse("a")
    town.channel("b").failures = [
        DeliveryError(Reason.RATE_LIMITED, "slow", retry_after_s=30, scope="chat")
    ]
    route = await town.route({}, {"within_seconds": 60}, {}, letters="abc")
    # The pace lets the next call be made after a minute.
    job_id = await take(town.client, route_id=route, messages_per_minute=1)
    await settled(town.service)
    for _ in range(20):
        clock.advance(10)
        await settled(town.service)
    done = await ended(town.client, job_id)

    assert town.reached() == {"a": [], "b": ["1"], "c": []}
    assert counts(done) == (1, 0, 0, 1)


async def test_resending_the_unknown_goes_where_nobody_knows(town: Town) -> None:
    await town.people("ab", [1])
    lost = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)
    town.channel("a").failures = [lost]
    town.channel("b").failures = [DeliveryError(Reason.INVALID_MESSAGE, "no such thing")]
    route = await town.route({"on_unknown": "continue"}, {}, letters="ab")
    job_id = await take(town.client, route_id=route)
    done = await ended(town.client, job_id)
    [recipient] = await recipients(town.client, job_id)
    message = (await town.client.get(f"/v1/messages/{recipient['message_id']}")).json()
    answer = await town.client.post(f"/v1/broadcast/{job_id}/resend-unknown")
    assert answer.is_success, answer.text
    again = await ended(town.client, answer.json()["job_id"])

    assert (done["failed"], done["unknown"]) == (1, 1)
    assert (recipient["channel"], recipient["status"]) == ("messenger_a", "unknown")
    assert recipient["error"] == "messenger_a: the connection broke; messenger_b: no such thing"
    assert message["past_steps"][0]["status"] == "unknown"
    assert (again["sent"], town.reached()) == (1, {"a": ["1"], "b": [], "c": []})


async def test_a_look_that_moves_nobody_is_short_and_the_next_goes_on_behind_it(
    town: Town, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_watch, "GROUP", 2)
    monkeypatch.setattr(route_watch, "IDLE_GROUPS", 2)
    await town.people("ab", range(10))
    slow = DeliveryError(Reason.RATE_LIMITED, "slow", retry_after_s=60, scope="bot")
    town.channel("a").failures = [slow] * 10
    job_id = await take(town.client, route_id=await town.route(letters="ab"))
    await settled(town.service)
    async with town.service.db.transaction() as tx:
        for number in range(1, 9):
            await town.service.subscribers.block(
                tx, "messenger_b", f"user-{number}", reason="user_blocked_bot"
            )
        await town.service.get(ChannelStates).stop(tx, town.channel("a"), "bot_banned", "401")
    looks = []
    for _ in range(2):
        clock.advance(WATCH_S)
        await settled(town.service)
        looks.append(town.reached()["b"])

    assert looks == [["0"], ["0", "9"]]
    assert (await shown(town.client, job_id))["status"] == "running"


async def test_the_page_of_a_broadcast_tells_how_many_each_channel_reached(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    dashboard = pytest.importorskip("msgsvc_dashboard.plugin", reason="shows the page")
    channels = {name: {"plugin": "recording"} for name in CHANNELS}
    plugins = [*PLUGINS, ("dashboard", dashboard)]
    service = await make_service(extra_plugins=plugins, limits=LIMITS, channels=channels)
    tenant = await make_tenant(service)
    town = Town(service, tenant)
    await town.people("ab", [1, 2, 3])
    town.refuse("a", "3")
    job_id = await take(tenant.client, route_id=await town.route(letters="ab"))
    await ended(tenant.client, job_id)

    owner = await visitor(service, tenant.project.project_id)
    page = (await owner.get(f"/broadcasts/{job_id}")).text
    rows = re.findall(
        r"<code>(messenger_\w)</code>.*?</tr>", page.partition("Channels of the route")[2], re.S
    )
    figures = re.findall(r'class="number">(\d+)</td>', page.partition("Channels of the route")[2])

    assert rows == ["messenger_a", "messenger_b"]
    assert figures[:10] == ["2", "0", "0", "0", "2", "1", "0", "0", "0", "1"]
