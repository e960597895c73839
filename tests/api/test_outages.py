"""A messenger's platform that is away: nothing is tried in vain, nothing fails, everything goes out."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.subscribing import Subscribe

pytestmark = pytest.mark.parametrize(
    ("backend", "runner"),
    [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
    indirect=True,
)


class Observer:
    """A plugin that notes what it is told of channels."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    @hookimpl
    async def on_channel_unavailable(self, channel: Any, detail: str) -> None:
        self.told.append(("unavailable", channel.name, detail))

    @hookimpl
    async def on_channel_recovered(self, channel: Any) -> None:
        self.told.append(("recovered", channel.name))


class Platform:
    """What is behind a recording channel: away for as long as `is_away`."""

    def __init__(self, channel: RecordingChannel, patch: pytest.MonkeyPatch) -> None:
        self.is_away = False
        self.check_is_ok = False
        self.calls = 0
        self.checks = 0
        self._take = channel.send
        patch.setattr(channel, "send", self.send)
        patch.setattr(channel, "check", self.check)

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self.calls += 1
        if self.is_away:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no connection to api.example:443")
        return await self._take(chat_id, message)

    async def check(self) -> ChannelHealth:
        self.checks += 1
        ok = self.check_is_ok or not self.is_away
        return ChannelHealth(ok, "" if ok else "connection refused")


@pytest.fixture
def observer() -> Observer:
    return Observer()


@pytest.fixture
async def service(make_service: ServiceFactory, observer: Observer) -> Service:
    return await make_service(extra_plugins=[("observer", observer)])


@pytest.fixture
def sender(service: Service) -> RecordingChannel:
    """`messenger_a` in the process that owns its lane."""
    found = getattr(service, "worker", service).channels["messenger_a"]
    assert isinstance(found, RecordingChannel)
    return found


@pytest.fixture
def platform(sender: RecordingChannel, monkeypatch: pytest.MonkeyPatch) -> Platform:
    return Platform(sender, monkeypatch)


@pytest.fixture
async def people(subscribe: Subscribe, service: Service, sender: RecordingChannel) -> list[str]:
    found = [await subscribe(f"P{number}") for number in range(8)]
    await settled(service)
    sender.sent.clear()
    return found


async def send(service: Service, tenant: Tenant, people: list[str], text: str) -> None:
    async with service.db.transaction() as tx:
        for person in people:
            body = SendBody(subscriber_id=person, text=text)
            await service.messages.queue(tx, tenant.project.project_id, body)


async def statuses(service: Service) -> dict[str, int]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT status, COUNT(*) AS count FROM core_messages GROUP BY status"
        )
    return {row["status"]: row["count"] for row in rows}


async def is_out(service: Service) -> bool:
    async with service.db.read() as tx:
        state = await service.get(ChannelStates).find(tx, "messenger_a")
    return state is not None and state.outage_since_ms is not None


async def goes_away(
    service: Service, tenant: Tenant, people: list[str], platform: Platform
) -> None:
    """The platform is found to be away by the first message to each."""
    platform.is_away = True
    await send(service, tenant, people, "one")
    await until(lambda: is_out(service))


async def pass_time(service: Service, clock: FakeClock, seconds: float, step: float) -> None:
    passed = 0.0
    while passed < seconds:
        clock.advance(step)
        passed += step
        await settled(service)


async def comes_back(service: Service, clock: FakeClock, count: int) -> None:
    """Until as many messages were sent."""

    async def sent() -> bool:
        # A lease lasts 10 seconds of this clock, for which its owner must not stand still on a busy machine:
        # another would take the lane over from it, and overtake what it is sending.
        clock.advance(1)
        await asyncio.sleep(patient(0.05))  # the lane's owner looks once a second of real time
        return (await statuses(service)).get("sent") == count

    await until(sent)


async def test_what_waits_is_sent_when_the_platform_is_back(
    service: Service,
    tenant: Tenant,
    people: list[str],
    platform: Platform,
    sender: RecordingChannel,
    clock: FakeClock,
) -> None:
    await goes_away(service, tenant, people, platform)
    await send(service, tenant, people, "two")
    await pass_time(service, clock, 7200, 60)
    meanwhile, calls_meanwhile = await statuses(service), platform.calls
    platform.is_away = False
    await comes_back(service, clock, 16)

    assert meanwhile == {"queued": 16}
    assert calls_meanwhile <= 2 * len(people)
    by_chat: dict[str, list[str]] = {}
    for sent in sender.sent:
        by_chat.setdefault(sent.chat_id, []).append(sent.message.text)
    assert len(by_chat) == len(people)
    assert set(map(tuple, by_chat.values())) == {("one", "two")}


async def test_its_waits_between_probes_grow(
    service: Service, tenant: Tenant, people: list[str], platform: Platform, clock: FakeClock
) -> None:
    await goes_away(service, tenant, people, platform)
    await pass_time(service, clock, 70, 0.5)
    in_a_minute, platform.checks = platform.checks, 0
    await pass_time(service, clock, 1200, 10)

    # 1, 2, 4, 8, 16, 32 seconds, and one a minute from then on.
    assert 5 <= in_a_minute <= 7
    assert 15 <= platform.checks <= 26


@pytest.mark.both_databases
async def test_a_platform_that_only_says_it_is_well_costs_a_few_calls(
    service: Service, tenant: Tenant, people: list[str], platform: Platform, clock: FakeClock
) -> None:
    platform.check_is_ok = True
    await goes_away(service, tenant, people, platform)
    platform.calls = 0
    for _ in range(20):
        clock.advance(60)
        await asyncio.sleep(0.1)  # the lane's owner looks once a second of real time
    meanwhile, calls_meanwhile = await statuses(service), platform.calls
    platform.is_away = False
    await comes_back(service, clock, 8)

    assert meanwhile.keys() <= {"queued", "sending"}
    assert calls_meanwhile <= 3 * 20


async def test_what_is_urgent_goes_first_afterwards(
    service: Service,
    tenant: Tenant,
    people: list[str],
    platform: Platform,
    sender: RecordingChannel,
    clock: FakeClock,
) -> None:
    await goes_away(service, tenant, people, platform)
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, "messenger_a", "chat-Eve", OutgoingMessage("Sign in?"))
    platform.is_away = False
    await comes_back(service, clock, 8)

    assert "Sign in?" in sender.texts[: service.settings.jobs.trial_calls]


async def test_a_message_that_fails_alone_uses_up_its_tries(
    service: Service,
    tenant: Tenant,
    people: list[str],
    sender: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take = sender.send

    async def refuse_one(chat_id: str, message: OutgoingMessage) -> str:
        if message.text == "poison":
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "500")
        return await take(chat_id, message)

    monkeypatch.setattr(sender, "send", refuse_one)
    await send(service, tenant, people[:1], "poison")
    for _ in range(service.settings.limits.delivery_attempts + 1):
        await settled(service)
        await send(service, tenant, people[1:2], "fine")
        await settled(service)
        clock.advance(400)
    await settled(service)

    assert (await statuses(service))["failed"] == 1
    assert not await is_out(service)


async def test_it_fails_when_the_platform_stays_away_too_long(
    service: Service, tenant: Tenant, people: list[str], platform: Platform, clock: FakeClock
) -> None:
    platform.check_is_ok = True
    await goes_away(service, tenant, people, platform)

    async def failed() -> bool:
        # Some were never tried before: their day begins with their first try.
        clock.advance(6 * 3600)
        await asyncio.sleep(0.02)  # the lane's owner looks once a second of real time
        return (await statuses(service)).get("failed") == 8

    await until(failed)
    messages = (await tenant.client.get("/v1/messages")).json()["data"]

    assert {message["reason"] for message in messages} == {"platform_unavailable"}
    assert (await tenant.client.get(f"/v1/subscribers/{people[0]}")).json()["status"] == "active"


@pytest.mark.both_databases
async def test_operators_see_since_when_and_why(
    service: Service,
    tenant: Tenant,
    people: list[str],
    platform: Platform,
    client: httpx2.AsyncClient,
    clock: FakeClock,
    observer: Observer,
) -> None:
    since = clock.now_ms()
    await goes_away(service, tenant, people, platform)
    answer = await client.get("/readyz")
    text = (await service.metrics.scrape())[0].decode()
    platform.is_away = False
    await comes_back(service, clock, 8)
    after = (await client.get("/readyz")).json()["checks"]["channel:messenger_a"]

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    check = answer.json()["checks"]["channel:messenger_a"]
    assert (check["ok"], "api.example" in check["detail"]) == (False, True)
    assert check["unavailable_since"].startswith("20")
    gauge = 'msgsvc_channel_unavailable_since_timestamp_seconds{channel="messenger_a"}'
    (shown,) = (line for line in text.splitlines() if line.startswith(gauge))
    assert float(shown.split()[-1]) == since / 1000
    assert after["ok"] is True
    assert observer.told == [
        ("unavailable", "messenger_a", "no connection to api.example:443"),
        ("recovered", "messenger_a"),
    ]


async def test_where_nothing_waits_a_probe_ends_it(
    service: Service, tenant: Tenant, people: list[str], platform: Platform, clock: FakeClock
) -> None:
    await goes_away(service, tenant, people, platform)
    await settled(service)
    async with service.db.transaction() as tx:
        await tx.execute("DELETE FROM core_jobs WHERE lane = 'channel:messenger_a'", {})
    platform.is_away = False
    calls_before = platform.calls

    async def over() -> bool:
        clock.advance(5)
        await asyncio.sleep(0.02)  # a probe's wake-up may be on its way
        return not await is_out(service)

    await until(over)
    assert platform.calls == calls_before


@pytest.mark.both_databases
async def test_new_settings_of_a_channel_end_it(service: Service, tenant: Tenant) -> None:
    own = RecordingChannel(
        ChannelIdentity("support", "chn_1", project_id=tenant.project.project_id)
    )
    async with service.db.transaction() as tx:
        began = [await service.get(ChannelOutages).start(tx, own, "away") for _ in range(2)]
        await service.get(ChannelStates).clear_stop(tx, own.key)
        found = await service.get(ChannelStates).find(tx, own.key)

    assert began == [True, False]
    assert found is not None
    assert found.outage_since_ms is None


async def test_a_project_is_told_of_its_own_bot(service: Service, tenant: Tenant) -> None:
    own = RecordingChannel(
        ChannelIdentity("support", "chn_1", project_id=tenant.project.project_id)
    )
    async with service.db.transaction() as tx:
        await service.get(ChannelOutages).start(tx, own, "connection refused")
    async with service.db.transaction() as tx:
        ended = [await service.get(ChannelOutages).finish(tx, own) for _ in range(2)]

    events = (await tenant.client.get("/v1/events")).json()["data"]
    told = {event["event"]: event["data"] for event in events}
    assert ended == [True, False]
    assert set(told) == {"channel.unavailable", "channel.recovered"}
    assert told["channel.unavailable"]["reason"] == "platform_unavailable"
    assert told["channel.unavailable"]["detail"] == "connection refused"
