"""However the messages of a batch end, and whoever ends them, its end is told once."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, OutgoingMessage
from msgsvc_core.db import WriteBatch
from msgsvc_core.messages.batches import store
from msgsvc_core.messages.batches.models import Batch
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.work import PATIENCE_S

#: Batches whose messages two lanes end at the same time.
BATCHES = 30


class Together:
    """Makes the first calls of two messengers end at the same moment."""

    def __init__(self, *channels: RecordingChannel) -> None:
        self._both = asyncio.Barrier(len(channels))
        for channel in channels:
            channel.send = self.send  # type: ignore[method-assign] # it waits for the other messenger
        self.sent = 0

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        if message.text == "together":
            await asyncio.wait_for(self._both.wait(), PATIENCE_S)
        self.sent += 1
        return f"m{self.sent}"


def recording(service: Service, name: str) -> RecordingChannel:
    channel = service.channels[name]
    assert isinstance(channel, RecordingChannel)
    return channel


@pytest.fixture
async def quiet(make_service: ServiceFactory) -> Service:
    """A service whose jobs wait for another to run them."""
    return await make_service(jobs={"runner": "none"})


async def subscribed(service: Service, project_id: str, name: str, channel: str) -> str:
    user = ChannelUser(f"user-{name}", name, name, "en")
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx, project_id, channel, user, f"chat-{name}", source="api"
        )
    return person.subscriber_id


async def completed(service: Service) -> list[dict[str, Any]]:
    """Data of the events `batch.completed`."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT data FROM core_events WHERE name = 'batch.completed'")
    return [json.loads(row["data"]) for row in rows]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_lanes_that_end_the_same_batches_at_once_count_each_message(
    quiet: Service, make_service: ServiceFactory
) -> None:
    project_id = (await quiet.projects.create("Shop")).project_id
    people = [
        [await subscribed(quiet, project_id, f"{channel}-{n}", channel) for n in range(BATCHES)]
        for channel in ("messenger_a", "messenger_b")
    ]
    batch_ids = []
    for number in range(BATCHES):
        # One lane meets the batches in one order, the other in the other.
        bodies = [
            {"subscriber_id": person, "text": "Hi" if number else "together"}
            for person in (people[0][number], people[1][-number - 1])
        ]
        batch_ids.append((await quiet.get(Batches).send(project_id, bodies)).batch_id)

    service = await make_service(database_url=quiet.settings.database_url, start=False)
    together = Together(recording(service, "messenger_a"), recording(service, "messenger_b"))
    async with service:
        await settled(service)
        events = await completed(service)

    counts = {"sent": 2, "failed": 0, "skipped": 0, "total": 2}
    told = {event["batch_id"]: {name: event[name] for name in counts} for event in events}
    assert together.sent == 2 * BATCHES
    assert len(events) == BATCHES
    assert told == dict.fromkeys(batch_ids, counts)


async def test_transactions_that_count_the_same_batches_wait_in_no_ring(quiet: Service) -> None:
    batches = [f"bat_{number}" for number in range(BATCHES)]
    unit = WriteBatch()
    for batch_id in batches:
        store.add(unit, Batch("prj_1", batch_id, 1000, 0, 0, 0, 0, None))
    await quiet.db.write(unit)

    async def count(batch_ids: list[str]) -> None:
        async with quiet.db.transaction() as tx:
            ended = [store.Ended("prj_1", batch_id, 1, 0, 0, 0) for batch_id in batch_ids]
            await store.count(tx, ended, 0)

    await asyncio.gather(*(count(order) for order in (batches, batches[::-1]) * 10))

    async with quiet.db.read() as tx:
        found = await store.find_many(tx, [("prj_1", batch_id) for batch_id in batches])
    assert [batch.sent for batch in found] == [20] * BATCHES


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ("UPDATE core_messages SET status = 'sending'", "failed"),
        ("UPDATE core_jobs SET deliveries = 100", "failed"),
        ("UPDATE core_messages SET expires_at_ms = 1", "skipped"),
        ("UPDATE core_subscribers SET status = 'unsubscribed'", "skipped"),
        ("UPDATE core_subscribers SET bot = 'messenger_b'", "skipped"),
    ],
    ids=["after a crash", "by a dead job", "too late", "to who left", "to who went over"],
)
async def test_what_is_not_sent_is_counted(
    quiet: Service, make_service: ServiceFactory, change: str, ends: str
) -> None:
    project_id = (await quiet.projects.create("Shop")).project_id
    ann = await subscribed(quiet, project_id, "ann", "messenger_a")
    bodies = [{"subscriber_id": ann, "text": text} for text in "abc"]
    batch = await quiet.get(Batches).send(project_id, bodies)
    async with quiet.db.transaction() as tx:
        await tx.execute(change)

    service = await make_service(database_url=quiet.settings.database_url)
    await settled(service)

    async with service.db.read() as tx:
        found = await service.get(Batches).find(tx, project_id, batch.batch_id)
    counts = {"sent": 0, "failed": 0, "skipped": 0, ends: 3, "total": 3}
    [data] = await completed(service)
    assert {name: data[name] for name in counts} == counts
    assert found.finished_at_ms is not None


async def test_an_erased_person_s_messages_are_skipped(
    quiet: Service,
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> None:
    tenant = await make_tenant(quiet)
    ann, bob = [
        await subscribed(quiet, tenant.project.project_id, name, "messenger_a")
        for name in ("ann", "bob")
    ]
    bodies = [{"subscriber_id": person, "text": "Hi"} for person in (ann, bob)]
    answer = await tenant.client.post("/v1/send/batch", json={"messages": bodies})
    erased = await tenant.client.delete(f"/v1/subscribers/{ann}?erase=true")

    service = await make_service(database_url=quiet.settings.database_url)
    await settled(service)

    [data] = await completed(service)
    assert (answer.status_code, erased.status_code) == (202, 204)
    assert (data["sent"], data["skipped"], data["total"]) == (1, 1, 2)


@pytest.mark.both_databases
async def test_a_message_that_is_deleted_before_it_is_sent_is_skipped(
    quiet: Service, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    tenant = await make_tenant(quiet)
    ann = await subscribed(quiet, tenant.project.project_id, "ann", "messenger_a")
    body = {"messages": [{"subscriber_id": ann, "text": "Hi"}]}
    batch = (await tenant.client.post("/v1/send/batch", json=body)).json()
    listed = await tenant.client.get("/v1/messages", params={"batch_id": batch["batch_id"]})
    [message] = listed.json()["data"]

    for _ in range(2):
        await tenant.client.delete(f"/v1/messages/{message['message_id']}")

    [event] = await completed(quiet)
    assert message["batch_id"] == batch["batch_id"]
    assert (event["skipped"], event["total"]) == (1, 1)
