"""Many deliveries at once: what one of them does to the others, and what is left when it is over."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from msgsvc_core.jobs import Job
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.runners import ServiceWithWorker
from msgsvc_webhooks import delivering
from msgsvc_webhooks.calls import CALLS, MOST_AHEAD, SLOW_PAUSE_S, Calls, CallsByLane
from plugins.areas.webhooks.tests.conftest import PATIENT

#: Deliveries of which the last are called for when the outcomes of the first are written.
MANY = 5 * CALLS

STATUSES = "SELECT status, COUNT(*) AS count FROM webhooks_deliveries GROUP BY status"


async def statuses(service: Service) -> dict[str, int]:
    async with service.db.read() as tx:
        return {row["status"]: row["count"] for row in await tx.fetch_all(STATUSES)}


@pytest.mark.parametrize("service", [PATIENT], indirect=True)
async def test_a_slow_call_does_not_delay_the_others_to_the_same_receiver(
    add_webhook: Any, receiver: Any, emit: Any
):
    receiver.then(receiver.trickle)
    await add_webhook()
    for _ in range(50):
        await emit()

    async def all_arrived() -> bool:
        return len(receiver.received) == 50

    await until(all_arrived)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_webhook_gets_no_more_than_eight_calls_at_once(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    at_once: list[int] = []
    now = 0
    eight = asyncio.Event()

    async def behave(_request: web.Request) -> web.Response:
        nonlocal now
        now += 1
        at_once.append(now)
        if now == 8:
            eight.set()
        # The first wait for one another, however slowly they come; then a ninth may show.
        await eight.wait()
        await asyncio.sleep(0.01)
        now -= 1
        return web.Response()

    receiver.always = behave
    await add_webhook()
    await asyncio.gather(*(emit() for _ in range(100)))
    await settled(service)

    assert len(receiver.received) == 100
    assert max(at_once) == 8


async def test_a_webhook_that_is_disabled_while_its_batch_is_on_its_way_gets_no_more(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    monkeypatch: pytest.MonkeyPatch,
):
    # For a second, rounds of calls may still go out of what was already in hand; here for none.
    assert delivering.FRESH_S == 1
    monkeypatch.setattr(delivering, "FRESH_S", 0)
    may_answer = asyncio.Event()

    async def behave(_request: web.Request) -> web.Response:
        await may_answer.wait()
        return web.Response()

    receiver.always = behave
    webhook = await add_webhook()
    await asyncio.gather(*(emit() for _ in range(60)))

    async def begun() -> bool:
        return len(receiver.received) == CALLS

    await until(begun)
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"status": "disabled"})
    may_answer.set()
    await settled(service)

    assert len(receiver.received) == CALLS
    assert await statuses(service) == {"delivered": CALLS, "cancelled": 60 - CALLS}


@pytest.mark.parametrize(
    "on_acquired",
    [
        "UPDATE core_jobs SET leased_by = 'another' WHERE payload LIKE :pattern",
        # As if it had made its attempt, and written it, before ours was.
        "UPDATE webhooks_deliveries SET attempts = 1 WHERE :pattern LIKE '%' || delivery_id || '%'",
    ],
    ids=["leased", "attempted"],
)
async def test_a_delivery_that_another_runner_has_taken_over_undoes_none_of_the_others(
    service: Service, add_webhook: Any, receiver: Any, on_acquired: str
):
    stolen = asyncio.Event()

    async def steal(request: web.Request) -> web.Response:
        delivery_id = request.headers["X-Service-Delivery-Id"]
        async with service.db.transaction() as tx:
            await tx.execute(on_acquired, {"pattern": f"%{delivery_id}%"})
        stolen.set()
        return web.Response()

    async def wait(_request: web.Request) -> web.Response:
        await stolen.wait()
        return web.Response()

    receiver.always = wait
    receiver.then(steal)
    await add_webhook()
    async with service.db.transaction() as tx:
        project_id = await tx.fetch_val("SELECT project_id FROM core_projects")
        for _ in range(MANY):
            await service.events.emit(tx, project_id, "subscription.created", {"source": "api"})

    async def written() -> bool:
        return (await statuses(service)).get("delivered") == MANY - 1

    await until(written)

    assert await statuses(service) == {"delivered": MANY - 1, "pending": 1}


@pytest.mark.parametrize(
    ("backend", "runner"),
    [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
    indirect=True,
)
async def test_what_was_not_tried_when_the_service_stops_is_tried_after_it(
    make_webhook_service: Any, make_tenant: Any, receiver: Any
):
    jobs = {"sweep_s": 0.05, "grace_s": 0.2}
    service = await make_webhook_service(core={"jobs": jobs})
    tenant = await make_tenant(service)
    receiver.always = receiver.trickle
    await tenant.client.post("/v1/webhooks", json={"url": receiver.url})
    async with service.db.transaction() as tx:
        for _ in range(40):
            await service.events.emit(
                tx, tenant.project.project_id, "subscription.created", {"source": "api"}
            )

    async def begun() -> bool:
        return len(receiver.received) == CALLS

    await until(begun)
    await service.stop()
    receiver.always = None
    await service.start()
    await settled(service)
    ids = {request.headers["X-Service-Delivery-Id"] for request in receiver.received}

    assert await statuses(service) == {"delivered": 40}
    assert len(ids) == 40
    # Only those whose calls were cut off came twice.
    assert len(receiver.received) == 40 + CALLS


async def test_nothing_is_left_of_a_lane_that_has_ended(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook()
    await emit()
    await settled(service)
    worker = service.worker if isinstance(service, ServiceWithWorker) else service

    async def gone() -> bool:
        gc.collect()
        return len(worker.get(CallsByLane)) == 0

    await until(gone)

    assert len(receiver.received) == 1


def jobs(count: int, first: int = 0) -> list[Job]:
    return [
        Job(f"job_{number}", "webhooks.deliver", "webhook:whe_1", {}, 1, 1, 0, "prj_1")
        for number in range(first, first + count)
    ]


def new_calls(wake: Callable[[], None] = lambda: None) -> Calls:
    async def turn() -> None:
        """Comes at once."""

    return Calls(FakeClock(), wake, turn)


def claimed_of(calls: Calls, *, took_s: float, count: int = 50) -> Calls:
    """After so many calls that took so long."""
    for job in jobs(count, first=1000):
        calls.claimed([job])
        calls.over(job, took_s)
    return calls


def test_no_more_is_claimed_for_a_slow_receiver_than_it_is_called_with():
    calls = claimed_of(new_calls(), took_s=10)

    assert calls.capacity().jobs <= CALLS + 1


def test_much_is_claimed_ahead_for_a_fast_receiver():
    calls = claimed_of(new_calls(), took_s=0.005)

    assert calls.capacity().jobs == CALLS + MOST_AHEAD


def test_a_lane_is_woken_when_half_of_what_was_claimed_ahead_is_done():
    woken: list[bool] = []
    calls = claimed_of(new_calls(lambda: woken.append(True)), took_s=0.005)
    claimed = jobs(calls.capacity().jobs)
    calls.claimed(claimed)
    full = calls.capacity().jobs
    for job in claimed[: MOST_AHEAD // 2]:
        calls.over(job, 0.005)
    before = len(woken)
    for job in claimed[MOST_AHEAD // 2 :]:
        calls.over(job, 0.005)

    assert full == 0
    assert (before, len(woken)) == (0, 1)


def test_what_failed_without_a_call_is_in_hand_no_more():
    calls = new_calls()
    claimed = jobs(CALLS)
    calls.claimed(claimed)
    full = calls.capacity().jobs
    calls.ended(claimed)

    assert (full, calls.capacity().jobs) == (0, CALLS)


async def test_calls_to_slow_receivers_begin_one_after_another(service: Service):
    calls = service.get(CallsByLane)
    began_s = asyncio.get_running_loop().time()
    await asyncio.gather(*(calls.slow_turn() for _ in range(51)))
    took_s = asyncio.get_running_loop().time() - began_s

    assert took_s >= 50 * SLOW_PAUSE_S
    assert claimed_of(new_calls(), took_s=10).is_slow
    assert not claimed_of(new_calls(), took_s=0.1).is_slow


async def test_batches_that_overlap_are_called_for_in_turn_and_one_that_ends_takes_none_along():
    calls = new_calls()
    made: list[str] = []
    broken_off: list[str] = []
    may_end = asyncio.Event()

    async def of_first(job: Job) -> None:
        made.append(job.job_id)
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            broken_off.append(job.job_id)
            raise

    async def of_second(job: Job) -> None:
        made.append(job.job_id)

    first, second = jobs(CALLS + 3), jobs(5, first=100)
    calls.make(first, of_first)
    calls.make(second, of_second)
    await asyncio.sleep(0)
    calls_at_once = list(made)
    calls.give_up(of_first)

    async def all_of_second() -> bool:
        return made[CALLS:] == [job.job_id for job in second]

    await until(all_of_second)

    assert calls_at_once == broken_off == [job.job_id for job in first[:CALLS]]
