"""What every runner promises of lanes: their order, owners, concurrency and batches."""

import asyncio
from collections.abc import Sequence

import pytest

from msgsvc_core.jobs import BULK, NORMAL, URGENT, Job, JobContext
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from tests.contracts.work import Work, change, enqueue, holds, on_every_runner, start, states, work

pytestmark = on_every_runner


async def test_urgent_jobs_of_a_lane_go_first(make_service: ServiceFactory) -> None:
    plugin = Work()
    service = await start(make_service, plugin)

    await enqueue(
        service,
        work(1, priority=BULK),
        work(2, priority=NORMAL),
        work(3, priority=URGENT),
        work(4, priority=NORMAL),
    )
    await settled(service)

    assert plugin.runs == [3, 2, 4, 1]


async def test_an_exclusive_lane_has_one_owner_among_runners(make_service: ServiceFactory) -> None:
    first, second = Work(), Work()
    one = await start(make_service, first)
    two = await start(make_service, second, database_url=one.settings.database_url)

    for n in range(10):
        await enqueue(one if n % 2 else two, work(n, lane="own:x"))
        await settled(one)

    assert sorted(map(len, (first.runs, second.runs))) == [0, 10]


async def test_an_exclusive_lane_is_free_as_soon_as_its_owner_stops(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    first, second = Work(), Work()
    one = await start(make_service, first)
    await enqueue(one, work(1, lane="own:x"))
    await settled(one)
    two = await start(make_service, second, database_url=one.settings.database_url)

    await one.stop()
    await enqueue(two, work(2, lane="own:x"))
    await settled(two)

    assert (first.runs, second.runs) == ([1], [2])


async def test_a_stuck_lane_does_not_delay_another(make_service: ServiceFactory) -> None:
    release = asyncio.Event()

    async def block_on_one(_ctx: JobContext, job: Job) -> None:
        if job.lane == "one:stuck":
            await release.wait()

    plugin = Work(block_on_one)
    service = await start(make_service, plugin)
    await enqueue(service, work(1, lane="one:stuck"))
    await until(holds(lambda: plugin.runs))

    await enqueue(service, work(2, lane="one:free"))
    await until(holds(lambda: 2 in plugin.runs))
    release.set()
    await settled(service)

    assert plugin.runs == [1, 2]


@pytest.mark.parametrize(("lane", "most"), [("one", 1), ("three", 3), ("default", 8)])
async def test_a_lane_works_on_as_many_jobs_as_its_concurrency(
    make_service: ServiceFactory, lane: str, most: int
) -> None:
    running, peak = 0, 0

    async def count(_ctx: JobContext, _job: Job) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.02)
        running -= 1

    plugin = Work(count)
    service = await start(make_service, plugin)
    await settled(service)  # the core's own first job has a place in the default lane
    await enqueue(service, *(work(n, lane=lane) for n in range(20)))
    await settled(service)

    assert peak == most
    assert sorted(plugin.runs) == list(range(20))


async def test_a_batch_lane_hands_over_several_jobs_in_their_order(
    make_service: ServiceFactory,
) -> None:
    sizes: list[int] = []

    class Batches(Work):
        async def _run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
            sizes.append(len(jobs))
            await super()._run(ctx, jobs)

    plugin = Batches()
    service = await start(make_service, plugin)

    await enqueue(service, *(work(n, lane="batch") for n in range(25)))
    await settled(service)

    assert sizes == [10, 10, 5]
    assert plugin.runs == list(range(25))


async def test_many_wakes_of_a_lane_at_once_are_one_drain(make_service: ServiceFactory) -> None:
    plugin = Work()
    service = await start(make_service, plugin)

    await asyncio.gather(*(enqueue(service, work(n)) for n in range(50)))
    await settled(service)

    assert sorted(plugin.runs) == list(range(50))


async def test_a_job_whose_lease_ran_out_in_its_handler_is_not_begun_beside_itself(
    make_service: ServiceFactory,
) -> None:
    may_end = asyncio.Event()

    async def wait(_ctx: JobContext, _job: Job) -> None:
        await may_end.wait()

    plugin = Work(wait)
    service = await start(make_service, plugin)
    await enqueue(service, work(1, lane="three"))
    await until(holds(lambda: plugin.runs))

    # As if the process had stood still.
    await change(service, "leased_until_ms = 0")
    await enqueue(service, work(2, lane="three"))
    await until(holds(lambda: 2 in plugin.runs))
    may_end.set()
    await settled(service)

    assert plugin.runs == [1, 2]
    assert await states(service) == []


async def test_a_job_that_was_put_back_runs_again_before_the_rest_of_its_batch_has_ended(
    make_service: ServiceFactory,
) -> None:
    may_end = asyncio.Event()

    async def handle(ctx: JobContext, job: Job) -> None:
        if job.deliveries == 1:
            async with ctx.rescheduling(job, after_s=0):
                pass
            await may_end.wait()

    plugin = Work(handle)
    service = await start(make_service, plugin)
    await enqueue(service, work(1, lane="three"))
    await until(holds(lambda: plugin.runs == [1, 1]))
    may_end.set()
    await settled(service)

    assert plugin.runs == [1, 1]
    assert await states(service) == []
