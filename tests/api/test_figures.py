"""What `msgsvc top` reads: lanes, channels, and the messages of the last minute, on both databases."""

import pytest

from msgsvc_core.channels import ChannelIdentity, DeliveryError, Reason
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.cli.figures import ChannelFigures, FiguresReader, LaneFigures
from msgsvc_core.jobs import NewJob
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

pytestmark = pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)


def reader_of(service: Service) -> FiguresReader:
    return FiguresReader(
        clock=service.clock,
        db=service.db,
        events=service.events,
        channels=service.channels,
        states=service.get(ChannelStates),
    )


async def send(service: Service, tenant: Tenant, subscriber_id: str, count: int = 1) -> None:
    async with service.db.transaction() as tx:
        for _ in range(count):
            body = SendBody(subscriber_id=subscriber_id, text="Hi")
            await service.messages.queue(tx, tenant.project.project_id, body)
    await settled(service)


async def lane(reader: FiguresReader, name: str) -> LaneFigures:
    [found] = [each for each in (await reader.read()).lanes if each.lane == name]
    return found


async def channel(reader: FiguresReader, key: str = "messenger_a") -> ChannelFigures:
    [found] = [each for each in (await reader.read()).channels if each.key == key]
    return found


@pytest.mark.both_databases
async def test_jobs_are_counted_by_lane_and_state(make_service: ServiceFactory) -> None:
    idle = await make_service(jobs={"runner": "none"})
    now_ms = idle.clock.now_ms()
    async with idle.db.transaction() as tx:
        await idle.jobs.enqueue(
            tx,
            NewJob("a", {}, lane="webhook:1", run_at_ms=now_ms - 90_000),
            NewJob("a", {}, lane="webhook:1"),
            NewJob("a", {}, lane="webhook:1", run_at_ms=now_ms + 5),
            NewJob("running", {}, lane="webhook:1"),
            NewJob("dead", {}, lane="webhook:2"),
        )
        await tx.execute("UPDATE core_jobs SET state = name WHERE name IN ('running', 'dead')")
    figures = await reader_of(idle).read()

    lanes = {each.lane: each for each in figures.lanes}
    assert lanes["webhook:1"] == LaneFigures("webhook:1", 2, 1, 1, 0, 90.0, None, None)
    assert lanes["webhook:2"] == LaneFigures("webhook:2", 0, 0, 0, 1, None, None, None)
    # A channel's lane is there without jobs too.
    assert lanes["channel:messenger_a"] == LaneFigures(
        "channel:messenger_a", 0, 0, 0, 0, None, 0, 0
    )
    assert (figures.total("ready"), figures.total("dead"), figures.runners) == (2, 1, 0)


@pytest.mark.both_databases
async def test_messages_of_the_last_minute_are_counted_by_channel(
    service: Service,
    tenant: Tenant,
    ann: str,
    clock: FakeClock,
    channel: RecordingChannel,
) -> None:
    reader = reader_of(service)
    await send(service, tenant, ann, 3)
    first = await lane(reader, "channel:messenger_a")
    clock.advance(30)
    channel.failures = [DeliveryError(Reason.INVALID_MESSAGE, "no")]
    await send(service, tenant, ann)
    second = await lane(reader, "channel:messenger_a")
    clock.advance(45)
    third = await lane(reader, "channel:messenger_a")
    clock.advance(60)
    fourth = await lane(reader, "channel:messenger_a")

    assert [(each.sent, each.failed) for each in (first, second, third, fourth)] == [
        (3, 0),
        (3, 1),
        (0, 1),
        (0, 0),
    ]


async def test_a_reader_that_went_on_counts_as_one_that_begins(
    service: Service, tenant: Tenant, ann: str, clock: FakeClock
) -> None:
    reader = reader_of(service)
    for _ in range(4):
        await send(service, tenant, ann)
        await reader.read()
        clock.advance(3)
    went_on = await reader.read()

    assert (went_on.sent, (await reader_of(service).read()).sent) == (4, 4)


async def test_messages_of_a_projects_own_channel_are_counted_in_its_lane(
    service: Service, tenant: Tenant
) -> None:
    identity = ChannelIdentity("support", "chn_1", tenant.project.project_id)
    service.channels.register(identity, "recording", {})
    async with service.db.transaction() as tx:
        await tx.insert(
            "core_events",
            {
                "project_id": tenant.project.project_id,
                "event_id": "evt_1",
                "name": "delivery.success",
                "data": '{"channel": "support"}',
                "occurred_at_ms": service.clock.now_ms(),
            },
        )

    assert (await lane(reader_of(service), "channel:chn_1")).sent == 1


async def test_a_channel_shows_what_troubles_it_most(service: Service) -> None:
    reader, states, now_ms = reader_of(service), service.get(ChannelStates), service.clock.now_ms()
    seen = [await channel(reader)]
    bot = service.channels["messenger_a"]
    async with service.db.transaction() as tx:
        await states.pause(tx, bot.key, now_ms + 60_000)
    seen.append(await channel(reader))
    async with service.db.transaction() as tx:
        await service.get(ChannelOutages).start(tx, bot, "connection refused")
    seen.append(await channel(reader))
    async with service.db.transaction() as tx:
        await states.stop(tx, bot, "bot_banned", "Unauthorized")
    seen.append(await channel(reader))

    assert [(each.status, each.detail, each.since_ms, each.until_ms) for each in seen] == [
        ("working", "", None, None),
        ("paused", "its platform asked it to wait", None, now_ms + 60_000),
        ("unavailable", "connection refused", now_ms, None),
        ("stopped", "bot_banned: Unauthorized", now_ms, None),
    ]
