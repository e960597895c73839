"""A bot that is banned or told to wait: it keeps to it, says so, and harms no other."""

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
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.subscribing import Subscribe

BANNED = DeliveryError(Reason.BOT_BANNED, "the token was revoked")

pytestmark = pytest.mark.parametrize(
    ("backend", "runner"),
    [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
    indirect=True,
)


class Watcher:
    """A plugin that notes what it is told of channels."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    @hookimpl
    async def on_channel_stopped(self, channel: Any, reason: str, detail: str) -> None:
        self.told.append(("stopped", channel.name, reason, detail))

    @hookimpl
    async def on_channel_recovered(self, channel: Any) -> None:
        self.told.append(("recovered", channel.name))


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
async def service(make_service: ServiceFactory, watcher: Watcher) -> Service:
    return await make_service(extra_plugins=[("watcher", watcher)])


@pytest.fixture
def sender(service: Service) -> RecordingChannel:
    """`messenger_a` in the process that owns its lane."""
    return of(service, "messenger_a")


def of(service: Service, name: str) -> RecordingChannel:
    found = getattr(service, "worker", service).channels[name]
    assert isinstance(found, RecordingChannel)
    return found


async def send(service: Service, tenant: Tenant, subscriber_id: str, *texts: str) -> list[str]:
    async with service.db.transaction() as tx:
        return [
            (
                await service.messages.queue(
                    tx, tenant.project.project_id, SendBody(subscriber_id=subscriber_id, text=text)
                )
            ).message_id
            for text in texts
        ]


async def statuses(service: Service) -> list[tuple[str, str | None]]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT status, reason FROM core_messages ORDER BY message_id")
    return [(row["status"], row["reason"]) for row in rows]


async def ban(
    service: Service, tenant: Tenant, subscribe: Subscribe, sender: RecordingChannel
) -> None:
    """One message has met the ban, two wait."""
    ann = await subscribe("Ann")
    ben = await subscribe("Ben")
    sender.sent.clear()
    sender.failures = [BANNED]
    await send(service, tenant, ann, "one")
    await settled(service)
    await send(service, tenant, ann, "two")
    await send(service, tenant, ben, "three")
    await settled(service)


# ---- banned -------------------------------------------------------------------------------------


async def test_a_banned_bot_stops_and_what_is_queued_waits(
    service: Service, tenant: Tenant, subscribe: Subscribe, sender: RecordingChannel
) -> None:
    await ban(service, tenant, subscribe, sender)
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, "messenger_a", "chat-Ann", OutgoingMessage("Hello?"))
    await settled(service)

    assert await statuses(service) == [("failed", "bot_banned"), ("queued", None), ("queued", None)]
    assert sender.texts == []


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_many_calls_that_meet_the_ban_at_once_one_message_fails(
    service: Service, tenant: Tenant, subscribe: Subscribe, sender: RecordingChannel
) -> None:
    people = [await subscribe(name) for name in ("Ann", "Ben", "Cid")]
    sender.failures = [BANNED] * 3
    async with service.db.transaction() as tx:
        for person in people:
            body = SendBody(subscriber_id=person, text="Hi")
            await service.messages.queue(tx, tenant.project.project_id, body)
    await settled(service)

    assert sorted(await statuses(service)) == [
        ("failed", "bot_banned"),
        ("queued", None),
        ("queued", None),
    ]


async def test_while_its_stop_can_not_be_written_no_message_is_lost(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a plugin's bug")

    owner = getattr(service, "worker", service)
    ann = await subscribe("Ann")
    sender.sent.clear()
    sender.failures = [BANNED]
    monkeypatch.setattr(owner.get(ChannelStates), "stop", broken)
    await send(service, tenant, ann, "one")
    await until(lambda: _all_sent(service, 1))

    assert sender.texts == ["one"]


async def test_it_harms_no_other_bot(
    service: Service, tenant: Tenant, subscribe: Subscribe, sender: RecordingChannel
) -> None:
    await ban(service, tenant, subscribe, sender)
    other = of(service, "messenger_b")
    eve = await subscribe("Eve", channel="messenger_b")
    other.sent.clear()
    await send(service, tenant, eve, "hi")
    await settled(service)

    assert other.texts == ["hi"]


async def test_it_goes_on_by_itself_when_its_platform_lets_it(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    clock: FakeClock,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    async def refused() -> ChannelHealth:
        nonlocal asked
        asked += 1
        return ChannelHealth(False, "still banned", revoked=True)

    monkeypatch.setattr(sender, "check", refused)
    await ban(service, tenant, subscribe, sender)
    for _ in range(3):
        clock.advance(60.1)
        await settled(service)
    asked_while_banned, sent_while_banned = asked, list(sender.texts)
    monkeypatch.undo()
    clock.advance(60.1)
    await until(lambda: _all_sent(service, 2))

    assert asked_while_banned == 3
    assert sent_while_banned == []
    assert sorted(sender.texts) == ["three", "two"]
    assert watcher.told == [
        ("stopped", "messenger_a", "bot_banned", "the token was revoked"),
        ("recovered", "messenger_a"),
    ]


async def _all_sent(service: Service, count: int) -> bool:
    return [status for status, _ in await statuses(service)].count("sent") == count


@pytest.mark.both_databases
async def test_what_expires_meanwhile_is_not_sent(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    clock: FakeClock,
) -> None:
    await ban(service, tenant, subscribe, sender)
    ann = await subscribe("Ann")
    body = SendBody(subscriber_id=ann, text="code 1234", expires_in=30)
    async with service.db.transaction() as tx:
        await service.messages.queue(tx, tenant.project.project_id, body)
    clock.advance(60.1)
    await until(lambda: _all_sent(service, 2))
    await settled(service)

    assert (await statuses(service))[-1] == ("skipped", "expired")
    assert "code 1234" not in sender.texts


async def test_readiness_and_metrics_show_it(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    sender: RecordingChannel,
) -> None:
    await ban(service, tenant, subscribe, sender)

    answer = await client.get("/readyz")

    text = (await service.metrics.scrape())[0].decode()
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["channel:messenger_a"] == {
        "ok": False,
        "stopped": True,
        "detail": "stopped: bot_banned: the token was revoked",
    }
    assert answer.json()["checks"]["channel:messenger_b"]["ok"] is True
    assert 'msgsvc_channels_stopped{channel="messenger_a"} 1.0' in text
    assert 'msgsvc_channels_stopped{channel="messenger_b"} 0.0' in text


async def test_a_probe_that_finds_the_token_revoked_stops_the_bot(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    sender: RecordingChannel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = await subscribe("Ann")
    sender.sent.clear()

    async def revoked() -> ChannelHealth:
        return ChannelHealth(False, "401", revoked=True)

    monkeypatch.setattr(service.channels["messenger_a"], "check", revoked)
    answer = await client.get("/readyz")
    # The owner of the lane may be another process, which looks once a second.
    await asyncio.sleep(1.1)
    await send(service, tenant, ann, "one")
    await settled(service)

    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert (await statuses(service), sender.texts) == ([("queued", None)], [])


async def test_a_project_hears_of_its_own_bot(service: Service, tenant: Tenant) -> None:
    own = RecordingChannel(
        ChannelIdentity("support", "chn_1", project_id=tenant.project.project_id)
    )
    states = service.get(ChannelStates)
    async with service.db.transaction() as tx:
        stopped = [await states.stop(tx, own, "bot_banned", "banned") for _ in range(2)]
    async with service.db.transaction() as tx:
        resumed = [await states.resume(tx, own) for _ in range(2)]

    events = (await tenant.client.get("/v1/events")).json()["data"]
    assert (stopped, resumed) == ([True, False], [True, False])
    told = {event["event"]: event["data"] for event in events}
    assert set(told) == {"channel.stopped", "channel.recovered"}
    assert told["channel.stopped"]["channel"] == "support"
    assert told["channel.stopped"]["reason"] == "bot_banned"
    assert told["channel.stopped"]["detail"] == "banned"


async def test_nobody_else_hears_of_a_shared_bot(
    service: Service, tenant: Tenant, subscribe: Subscribe, sender: RecordingChannel
) -> None:
    await ban(service, tenant, subscribe, sender)

    events = (await tenant.client.get("/v1/events")).json()["data"]
    assert "channel.stopped" not in {event["event"] for event in events}


# ---- told to wait -------------------------------------------------------------------------------


async def pause(
    service: Service, tenant: Tenant, subscribe: Subscribe, sender: RecordingChannel
) -> None:
    """One message was refused for 30 seconds, another waits."""
    ann, ben = await subscribe("Ann"), await subscribe("Ben")
    sender.sent.clear()
    sender.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", 30)]
    await send(service, tenant, ann, "one")
    await settled(service)
    await send(service, tenant, ben, "two")
    await settled(service)


async def test_nothing_is_sent_until_the_platform_said(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    clock: FakeClock,
) -> None:
    await pause(service, tenant, subscribe, sender)
    clock.advance(29.9)
    await settled(service)
    before = list(sender.texts)
    clock.advance(0.2)
    await until(lambda: _all_sent(service, 2))

    assert before == []
    assert sender.texts == ["one", "two"]


async def test_the_next_owner_of_the_lane_keeps_to_it(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    clock: FakeClock,
    make_service: ServiceFactory,
) -> None:
    await pause(service, tenant, subscribe, sender)
    await service.stop()
    next_one = await make_service(database_url=service.settings.database_url)
    clock.advance(29.9)
    await settled(next_one)
    before = list(of(next_one, "messenger_a").texts)
    clock.advance(0.2)
    await until(lambda: _all_sent(next_one, 2))

    assert before == []
    assert of(next_one, "messenger_a").texts == ["one", "two"]


async def test_metrics_show_the_wait(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    clock: FakeClock,
) -> None:
    await pause(service, tenant, subscribe, sender)

    owner = getattr(service, "worker", service)
    text = (await owner.metrics.scrape())[0].decode()
    until_s = clock.time() + 30
    paused = 'msgsvc_channel_paused_until_timestamp_seconds{channel="messenger_a"}'
    refused = 'msgsvc_channel_rate_limited_total{channel="messenger_a",scope="bot"}'
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(found[paused]) == pytest.approx(until_s, abs=0.1)
    assert float(found[refused]) == 1


async def test_a_wait_of_one_chat_holds_up_no_other(
    service: Service,
    tenant: Tenant,
    subscribe: Subscribe,
    sender: RecordingChannel,
    clock: FakeClock,
) -> None:
    ann, ben = await subscribe("Ann"), await subscribe("Ben")
    sender.sent.clear()
    sender.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", 30, scope="chat")]
    await send(service, tenant, ann, "one")
    await settled(service)
    await send(service, tenant, ben, "two")
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, "messenger_a", "chat-Ann", OutgoingMessage("Hello?"))
    await settled(service)
    before = list(sender.texts)
    clock.advance(30.1)
    await settled(service)

    assert before == ["two"]
    assert sorted(sender.texts) == ["Hello?", "one", "two"]
