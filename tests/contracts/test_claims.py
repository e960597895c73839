"""What a runner claims for several lanes at once, on both databases."""

import asyncio

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob, store
from msgsvc_core.jobs.claims import Claims, Lease
from msgsvc_core.jobs.lease_clock import LeaseClock
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory

LANES = [f"lane-{number}" for number in range(5)]

#: Milliseconds.
LEASE_MS = 10_000


async def filled(make_service: ServiceFactory) -> Service:
    """A service without a runner of its own, whose lanes have three jobs each."""
    service = await make_service(jobs={"runner": "none"})
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(
            tx, *(NewJob("work", lane=lane) for lane in LANES for _ in range(3))
        )
    return service


def claims_of(service: Service, clock: FakeClock, runner_id: str) -> Claims:
    lease = Lease(runner_id, LEASE_MS, LeaseClock(clock, LEASE_MS))
    return Claims(service.db, clock, lease, ["work"])


async def test_lanes_that_are_claimed_for_at_once_get_their_own_jobs(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await filled(make_service)
    claims = claims_of(service, clock, "run_1")

    found = await asyncio.gather(*(claims.claim(lane, 2, suspects=True) for lane in LANES))
    rest = await asyncio.gather(*(claims.claim(lane, 2, suspects=True) for lane in LANES))

    assert [[job.lane for job in claimed.jobs] for claimed in found] == [
        [lane] * 2 for lane in LANES
    ]
    assert [[job.lane for job in claimed.jobs] for claimed in rest] == [[lane] for lane in LANES]


@pytest.mark.both_databases
async def test_a_clock_that_is_set_back_changes_neither_when_nor_in_which_order_jobs_run(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await filled(make_service)
    claims, lane = claims_of(service, clock, "run_1"), LANES[0]
    later_ms = clock.now_ms() + 1000
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("work", lane=lane, run_at_ms=later_ms))
    clock.set_by(-45)
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("work", lane=lane), NewJob("work", lane=lane))
    async with service.db.read() as tx:
        accepted = await tx.fetch_all(
            "SELECT job_id FROM core_jobs WHERE lane = :lane AND run_at_ms <> :later_ms"
            " ORDER BY job_id",
            {"lane": lane, "later_ms": later_ms},
        )

    # As late as after a pause, when the clock has reached the old time again.
    clock.advance(45)
    found = await claims.claim(lane, 10, suspects=True)
    # What was to run later does, by the clock as it is.
    clock.advance(1)
    rest = await claims.claim(lane, 10, suspects=True)

    assert [job.job_id for job in found.jobs] == [row["job_id"] for row in accepted]
    assert [job.run_at_ms for job in rest.jobs] == [later_ms]


async def test_jobs_are_due_at_once_when_the_clock_is_set_back(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await filled(make_service)
    claims = claims_of(service, clock, "run_1")
    clock.set_by(-45)

    found = await claims.claim(LANES[0], 2, suspects=True)
    async with service.db.transaction() as tx:
        waiting = await store.reschedule(
            tx,
            [store.Waiting(found.jobs[0], clock.now_ms() + 500, 0)],
            runner_id="run_1",
        )
    rest = await claims.claim(LANES[0], 10, suspects=True)

    assert len(found.jobs) == 2
    assert waiting == {found.jobs[0].job_id}
    # The one that was rescheduled waits, although it is due before it was created.
    assert len(rest.jobs) == 1


@pytest.mark.both_databases
async def test_a_runner_that_stops_while_it_claims_keeps_nothing(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await filled(make_service)
    found = 0
    for turns, lane in enumerate(LANES, start=1):
        claiming = asyncio.create_task(
            claims_of(service, clock, "run_1").claim(lane, 3, suspects=True)
        )
        for _ in range(2 * turns):
            await asyncio.sleep(0)
        claiming.cancel()
        await asyncio.wait([claiming])
        async with service.db.transaction() as tx:
            await store.release(tx, runner_id="run_1")
        # What was still under way would be committed by now.
        await asyncio.sleep(0.05)
        claimed = await claims_of(service, clock, "run_2").claim(lane, 3, suspects=True)
        found += len(claimed.jobs)

    assert found == 3 * len(LANES)


async def test_runners_that_claim_at_once_share_what_there_is(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await filled(make_service)
    runners = [claims_of(service, clock, runner_id) for runner_id in ("run_1", "run_2")]

    found = await asyncio.gather(
        *(claims.claim(lane, 2, suspects=True) for claims in runners for lane in LANES)
    )
    ids = [job.job_id for claimed in found for job in claimed.jobs]

    assert len(ids) == len(set(ids))
    # A lane that the other runner was just claiming for may seem empty; nothing of it is lost.
    rest = [await runners[0].claim(lane, 3, suspects=True) for lane in LANES]
    assert len(ids) + sum(len(claimed.jobs) for claimed in rest) == 3 * len(LANES)


async def test_a_lane_whose_claim_fails_takes_no_other_along(
    make_service: ServiceFactory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await filled(make_service)
    claims = claims_of(service, clock, "run_1")
    look = store.read_lane

    async def broken(tx: Tx, lane: str) -> store.LaneSnapshot:
        if lane == LANES[1]:
            raise ValueError(lane)
        return await look(tx, lane)

    monkeypatch.setattr(store, "read_lane", broken)
    found = await asyncio.gather(
        *(claims.claim(lane, 3, suspects=True) for lane in LANES), return_exceptions=True
    )

    assert [isinstance(one, ValueError) for one in found] == [lane == LANES[1] for lane in LANES]
    assert sum(len(one.jobs) for one in found if not isinstance(one, BaseException)) == 12
