"""Chains of many people: long ones over restarts, and steps that are all due at one moment."""

import time
from collections import defaultdict
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, Sent, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.faults.conftest import Figure, Rounds

pytestmark = pytest.mark.faults

STEPS = [
    {"delay": {"hours": 1}, "message": {"text": {"en": "Hello", "ru": "Привет"}}},
    {"delay": {"hours": 1}, "message": {"text": "Bye"}, "when": {"tags_none": ["vip"]}},
]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(plugins=("drip",), jobs={"runner": "none"})


async def test_steps_that_are_due_at_one_moment_are_each_taken_once(
    service: Service,
    tenant: Tenant,
    clock: FakeClock,
    make_service: ServiceFactory,
    rounds: Rounds,
    figure: Figure,
) -> None:
    people = rounds(short=1000, long=10_000)
    await _enroll(service, tenant, STEPS, people)
    clock.advance(3600)

    began = time.perf_counter()
    worker = await make_service(plugins=("drip",), database_url=service.settings.database_url)
    await until(lambda: _all_moved(service), interval_s=0.02, timeout_s=120)
    taken_s = time.perf_counter() - began
    await worker.stop()

    figure(
        f"steps due at one moment ({service.db.dialect})",
        f"{people} taken up in {taken_s:.1f} s, the start of the service and deliveries included",
        people=people,
        taken_s=taken_s,
    )
    async with service.db.read() as tx:
        receivers = await tx.fetch_val(
            "SELECT COUNT(DISTINCT subscriber_id) AS count FROM core_messages"
        )
        messages = await tx.fetch_val("SELECT COUNT(*) AS count FROM core_messages")
    assert (receivers, messages) == (people, people)
    assert await _count(service, "next_step = 1") == people


async def test_50_steps_over_restarts_are_each_sent_once_in_order_and_none_early(
    service: Service,
    tenant: Tenant,
    clock: FakeClock,
    make_service: ServiceFactory,
    rounds: Rounds,
    figure: Figure,
) -> None:
    people = rounds(short=20, long=1000)
    texts = [f"step {number}" for number in range(1, 51)]
    steps = [{"delay": {"hours": 1}, "message": {"text": text}} for text in texts]
    await _enroll(service, tenant, steps, people)

    async def start() -> Service:
        return await make_service(
            plugins=("drip",),
            drip={"look_s": 0.001},
            database_url=service.settings.database_url,
        )

    worker, sent = await start(), list[Sent]()
    for step in range(len(texts)):
        # Sometimes it is looked a second early, and sometimes another process goes on.
        if step % 5 == 0:
            await _advance(worker, clock, 3599)
            assert len(sent) + len(_sent_by(worker)) == step * people
        await _advance(worker, clock, 1 if step % 5 == 0 else 3600)
        assert len(sent) + len(_sent_by(worker)) == (step + 1) * people
        if step % 10 == 5:
            sent += _sent_by(worker)
            await worker.stop()
            worker = await start()
    sent += _sent_by(worker)

    by_chat = defaultdict(list)
    for message in sent:
        by_chat[message.chat_id].append(message.message.text)
    wrong = sum(shown != texts for shown in by_chat.values())
    figure(
        f"a chain of 50 steps over 5 restarts ({service.db.dialect})",
        f"{people} people, {len(sent)} messages, {wrong} people not each once in order",
        people=people,
        wrong=wrong,
    )
    assert (len(by_chat), wrong) == (people, 0)
    assert await _count(service, "status = 'completed'") == people


def _sent_by(service: Service) -> list[Sent]:
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    return channel.sent


async def _advance(service: Service, clock: FakeClock, seconds: float) -> None:
    await settled(service)
    clock.advance(seconds)
    await settled(service)


async def _all_moved(service: Service) -> bool:
    return not await _count(service, "next_step = 0")


async def _count(service: Service, condition: str) -> int:
    async with service.db.read() as tx:
        return int(
            await tx.fetch_val(f"SELECT COUNT(*) AS count FROM drip_enrollments WHERE {condition}")
        )


async def _enroll(
    service: Service, tenant: Tenant, steps: list[dict[str, Any]], people: int
) -> None:
    """People in a new chain, written as rows: subscribing each is not what is measured."""
    body = {"name": "Welcome", "trigger": {"on": "manual"}, "steps": steps}
    drip_id = (await tenant.client.post("/v1/drips", json=body)).json()["drip_id"]
    project_id, due_at_ms = tenant.project.project_id, service.clock.now_ms() + 3_600_000
    async with service.db.transaction() as tx:
        await tx.insert_many(
            "core_subscribers", [_person(service, project_id, number) for number in range(people)]
        )
        await tx.insert_many(
            "drip_enrollments",
            [_enrollment(project_id, drip_id, number, due_at_ms) for number in range(people)],
        )


def _person(service: Service, project_id: str, number: int) -> dict[str, Any]:
    now_ms = service.clock.now_ms()
    return {
        "project_id": project_id,
        "subscriber_id": f"sub_{number:05}",
        "channel": "messenger_a",
        "bot": service.channels["messenger_a"].key,
        "user_id": f"user-{number}",
        "chat_id": f"chat-{number}",
        "first_name": "Ann",
        "lang": "en",
        "status": "active",
        "source": "api",
        "created_at_ms": now_ms,
        "last_seen_at_ms": now_ms,
    }


def _enrollment(project_id: str, drip_id: str, number: int, due_at_ms: int) -> dict[str, Any]:
    return {
        "project_id": project_id,
        "enrollment_id": f"enr_{number:05}",
        "drip_id": drip_id,
        "version": 1,
        "subscriber_id": f"sub_{number:05}",
        "status": "active",
        "next_step": 0,
        "due_at_ms": due_at_ms,
        "created_at_ms": due_at_ms - 3_600_000,
    }
