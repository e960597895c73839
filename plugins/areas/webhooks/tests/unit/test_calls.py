"""How many calls are made at once, and what a batch of them does."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_devkit import until
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_webhooks import store
from msgsvc_webhooks.calls import CALLS, CallsByLane
from msgsvc_webhooks.models import Attempt
from msgsvc_webhooks.service import DELIVER, Webhooks
from plugins.areas.webhooks.tests.unit.parts import (
    NOW_MS,
    URL,
    ScriptedReceiver,
    add_delivery,
    add_webhook,
    answered,
    counted,
    delivery_of,
    job_of,
    spec_of,
)

LANE = "webhook:whe_1"
DAY_S = DAY_MS / 1000


def jobs_of_lane(count: int) -> list[Job]:
    return [claimed(NewJob(DELIVER, {}, lane=LANE)) for _ in range(count)]


async def test_eight_calls_are_made_at_once_and_the_rest_in_their_order(core: MemoryCore) -> None:
    calls, at_work, began = core.get(CallsByLane)[LANE], set[str](), list[str]()
    free = asyncio.Event()

    async def attempt(job: Job) -> None:
        began.append(job.job_id)
        at_work.add(job.job_id)
        await free.wait()
        at_work.discard(job.job_id)

    jobs = jobs_of_lane(CALLS + 3)
    calls.claimed(jobs)
    calls.make(jobs, attempt)

    async def all_places_taken() -> bool:
        return len(began) == CALLS

    await until(all_places_taken)
    assert len(at_work) == CALLS
    assert calls.capacity().jobs == 0
    free.set()

    async def all_done() -> bool:
        return len(began) == len(jobs) and not at_work

    await until(all_done)

    assert began == [job.job_id for job in jobs]


async def test_a_full_lane_is_woken_when_there_is_room_and_forgotten_at_the_end(
    core: MemoryCore,
) -> None:
    by_lane, woken = core.get(CallsByLane), list[str]()
    core.jobs.woken_by(lambda lane, _run_at_ms: woken.append(lane))
    calls, jobs = by_lane[LANE], jobs_of_lane(CALLS)
    calls.claimed(jobs)
    assert calls.capacity().jobs == 0
    calls.over(jobs[0], 5.0)

    assert woken == [LANE]
    assert len(by_lane) == 1
    del calls
    assert len(by_lane) == 0


async def test_a_batch_loads_once_and_writes_what_came_of_each(
    core: MemoryCore, receiver: ScriptedReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    async def find(tx: Tx, project_id: str, webhook_id: str, now_ms: int) -> Any:
        loaded.append(webhook_id)
        return await find_with_secrets(tx, project_id, webhook_id, now_ms)

    find_with_secrets = store.find_with_secrets
    monkeypatch.setattr(store, "find_with_secrets", find)
    async with core.db.transaction() as tx:
        webhook = await add_webhook(core, tx)
        first, second = [await add_delivery(core, tx, webhook) for _ in range(2)]
    receiver.answers += [answered(200), answered(500)]
    jobs = [claimed(job_of(each)) for each in (first, second)]
    done = await core.run(*jobs)

    assert loaded == [webhook.webhook_id]
    assert receiver.called == [(URL, first.delivery_id), (URL, second.delivery_id)]
    assert jobs[0] in done.completed
    assert [job for job, _ in done.rescheduled] == [jobs[1]]
    statuses = [(await delivery_of(core, each.delivery_id)).status for each in (first, second)]
    assert statuses == ["delivered", "pending"]


@pytest.mark.parametrize(
    ("webhook_status", "status", "after"),
    [("disabled", "pending", "cancelled"), ("active", "delivered", "delivered")],
)
async def test_what_needs_no_call_gets_none(
    core: MemoryCore, receiver: ScriptedReceiver, webhook_status: str, status: str, after: str
) -> None:
    async with core.db.transaction() as tx:
        webhook = await add_webhook(core, tx, status=webhook_status)
        delivery = await add_delivery(core, tx, webhook, status=status)
    job = claimed(job_of(delivery))
    done = await core.run(job)

    assert receiver.called == []
    assert job in done.completed
    found = await delivery_of(core, delivery.delivery_id)
    assert (found.status, found.attempts) == (after, 0)
    assert counted(core) == {}


async def test_what_was_not_tried_when_the_runner_stops_goes_back(
    core: MemoryCore, receiver: ScriptedReceiver
) -> None:
    async with core.db.transaction() as tx:
        delivery = await add_delivery(core, tx, await add_webhook(core, tx))
    stopping = JobInTest(core.db)
    stopping.is_stopping = True

    with pytest.raises(Stopping):
        await spec_of(core, DELIVER).handler(stopping, [claimed(job_of(delivery))])
    assert receiver.called == []
    assert (stopping.completed, stopping.rescheduled) == ([], [])


@pytest.mark.parametrize(("status", "after"), [("pending", "failed"), ("delivered", "delivered")])
async def test_a_delivery_ends_with_its_dead_job_unless_it_has_ended(
    core: MemoryCore, status: str, after: str
) -> None:
    on_dead = spec_of(core, DELIVER).on_dead
    assert on_dead is not None
    async with core.db.transaction() as tx:
        delivery = await add_delivery(core, tx, await add_webhook(core, tx), status=status)
        await on_dead(tx, claimed(job_of(delivery)), "a fault")

    assert (await delivery_of(core, delivery.delivery_id)).status == after


@pytest.mark.parametrize("core", [{"journal_days": 3}], indirect=True)
async def test_ended_secrets_are_forgotten_at_once_and_deliveries_after_their_days(
    core: MemoryCore, receiver: ScriptedReceiver
) -> None:
    async with core.db.transaction() as tx:
        webhook = await add_webhook(core, tx)
        old = await add_delivery(core, tx, webhook)
    receiver.answers += [answered(200), Attempt(NOW_MS + 2 * DAY_MS, 5, 200)]
    await core.run(job_of(old))
    core.clock.advance(2 * DAY_S)
    async with core.db.transaction() as tx:
        new = await add_delivery(core, tx, webhook)
        await core.get(Webhooks).rotate_secret(tx, PROJECT, webhook.webhook_id)
    await core.run(job_of(new))
    core.clock.advance(DAY_S + 1)
    await core.run(NewJob("webhooks.purge", {}))

    async with core.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM webhooks_secrets") == 1
        for table in ("webhooks_deliveries", "webhooks_attempts"):
            left = await tx.fetch_all(f"SELECT delivery_id FROM {table}")
            assert [row["delivery_id"] for row in left] == [new.delivery_id]
