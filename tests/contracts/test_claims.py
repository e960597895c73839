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
    """A service whose lanes have three jobs each, which its own runner takes for another plugin's."""
    service = await make_service()
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
