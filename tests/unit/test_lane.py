"""How a lane divides the jobs that it has claimed into batches."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from msgsvc_core.jobs.claims import Claimed, Lease
from msgsvc_core.jobs.contract import BULK, NORMAL, URGENT, Gate, Job, LaneSpec
from msgsvc_core.jobs.lane import Lane
from msgsvc_core.jobs.lease_clock import LeaseClock
from msgsvc_devkit import FakeClock


def job(number: int, priority: int) -> Job:
    return Job(f"job_{number}", "work", "channel:a", {}, 1, 1, 0, None, priority)


class Claims:
    """Has these jobs once."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    async def claim(self, _lane: str, _limit: int, **_options: object) -> Claimed:
        jobs, self._jobs = self._jobs, ()
        return Claimed(jobs, None)


async def batches(jobs: Sequence[Job], batch: int) -> list[list[str]]:
    """The batches that run at the same time."""
    running: list[list[str]] = []
    may_end = asyncio.Event()

    async def run(claimed: Sequence[Job], _gate: Gate | None) -> None:
        running.append([one.job_id for one in claimed])
        await may_end.wait()

    clock = FakeClock()
    lane = Lane(
        "channel:a",
        LaneSpec("channel", concurrency=4, batch=batch),
        ["work"],
        db=cast("Any", None),
        clock=clock,
        lease=Lease("run_1", 10_000, LeaseClock(clock, 10_000)),
        claims=cast("Any", Claims(jobs)),
        run=run,
        pass_on=None,
    )
    draining = asyncio.create_task(lane.drain())
    for _ in range(5):
        await asyncio.sleep(0)
    may_end.set()
    await draining
    return running


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (10, [["job_1"], ["job_2", "job_3"], ["job_4"]]),
        (1, [["job_1"], ["job_2"], ["job_3"], ["job_4"]]),
    ],
)
async def test_a_mailing_does_not_wait_for_the_messages_that_were_claimed_with_it(
    batch: int, expected: list[list[str]]
) -> None:
    jobs = [job(1, URGENT), job(2, NORMAL), job(3, NORMAL), job(4, BULK)]

    assert await batches(jobs, batch) == expected
