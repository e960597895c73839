"""What every runner promises of jobs: embedded on both databases, and woken by dramatiq on both brokers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.jobs import (
    BULK,
    NORMAL,
    URGENT,
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    NewJob,
    Retry,
    exponential,
)
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled, until
from msgsvc_core.testing.fixtures import ServiceFactory

pytestmark = pytest.mark.parametrize(
    ("backend", "runner"),
    [
        ("sqlite", "embedded"),
        ("postgresql", "embedded"),
        ("postgresql", "redis"),
        ("postgresql", "rabbitmq"),
    ],
    indirect=True,
)

Handle = Callable[[JobContext, Job], Awaitable[None]]


class Work:
    """A plugin with one kind of job, `work`, on lanes `one`, `three` and `own`, that notes its runs."""

    def __init__(self, handle: Handle | None = None, **options: Any) -> None:
        self._handle = handle
        self._options: dict[str, Any] = {"backoff": exponential(2, 2), "jitter": 0.0, **options}
        self.runs: list[Any] = []

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("work", self._run, **self._options)]

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return [
            LaneSpec("one"),
            LaneSpec("three", concurrency=3),
            LaneSpec("batch", batch=10),
            LaneSpec("own", exclusive=True),
        ]

    async def _run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.runs.append(job.payload.get("n"))
            if self._handle is not None:
                await self._handle(ctx, job)


async def enqueue(service: Service, *jobs: NewJob) -> None:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, *jobs)


def work(n: int = 0, lane: str = "one", **options: Any) -> NewJob:
    return NewJob("work", {"n": n}, lane=lane, **options)


async def states(service: Service) -> list[tuple[str, int]]:
    """State and attempts of the jobs there are."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT state, attempts FROM core_jobs WHERE name = 'work' ORDER BY job_id"
        )
    return [(row["state"], row["attempts"]) for row in rows]


@asynccontextmanager
async def reopened(service: Service) -> AsyncIterator[None]:
    """The database of a stopped service, to look into."""
    await service.db.connect()
    try:
        yield
    finally:
        await service.db.disconnect()


async def change(service: Service, assignments: str, **params: Any) -> None:
    async with service.db.transaction() as tx:
        await tx.execute(f"UPDATE core_jobs SET {assignments} WHERE name = 'work'", params)


async def start(make_service: ServiceFactory, plugin: Work, **settings: Any) -> Service:
    return await make_service(extra_plugins=[("work", plugin)], **settings)


async def test_a_job_runs_once_and_is_gone(make_service: ServiceFactory) -> None:
    plugin = Work()
    service = await start(make_service, plugin)

    await enqueue(service, work(1))
    await settled(service)

    assert plugin.runs == [1]
    assert await states(service) == []


async def test_a_job_of_a_transaction_that_fails_never_runs(make_service: ServiceFactory) -> None:
    plugin = Work()
    service = await start(make_service, plugin)

    with suppress(ZeroDivisionError):
        async with service.db.transaction() as tx:
            await service.jobs.enqueue(tx, work(1))
            raise ZeroDivisionError
    await enqueue(service, work(2))
    await settled(service)

    assert plugin.runs == [2]


async def test_a_failed_job_runs_again_after_its_backoff(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    async def fail_first(_ctx: JobContext, job: Job) -> None:
        if job.attempts == 1:
            raise RuntimeError("the first attempt")

    plugin = Work(fail_first)
    service = await start(make_service, plugin)
    await enqueue(service, work(1))
    await settled(service)
    clock.advance(1.9)
    await settled(service)
    before = list(plugin.runs)

    clock.advance(0.2)
    await settled(service)

    assert (before, plugin.runs) == ([1], [1, 1])
    assert await states(service) == []


async def test_a_job_that_always_fails_becomes_a_dead_letter(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    async def fail(_ctx: JobContext, _job: Job) -> None:
        raise RuntimeError("always")

    plugin = Work(fail, max_attempts=3)
    service = await start(make_service, plugin)
    await enqueue(service, work(1))
    for _ in range(6):
        await settled(service)
        clock.advance(60)

    assert plugin.runs == [1, 1, 1]
    assert await states(service) == [("dead", 3)]


async def test_a_retry_asked_for_by_the_handler_need_not_count(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    async def wait_twice(_ctx: JobContext, _job: Job) -> None:
        if len(plugin.runs) <= 2:
            raise Retry(5, "the platform asked us to wait", counts=False)

    plugin = Work(wait_twice, max_attempts=1)
    service = await start(make_service, plugin)
    await enqueue(service, work(1))
    for _ in range(3):
        await settled(service)
        clock.advance(5.1)
    await settled(service)

    assert plugin.runs == [1, 1, 1]
    assert await states(service) == []


async def test_a_key_is_unique_while_its_job_is_open(make_service: ServiceFactory) -> None:
    plugin = Work()
    service = await start(make_service, plugin)

    await enqueue(service, work(1, key="k"), work(2, key="k"), work(3, key="other"))
    await settled(service)
    await enqueue(service, work(4, key="k"))
    await settled(service)

    assert sorted(plugin.runs) == [1, 3, 4]


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


async def test_a_job_for_later_waits_until_it_is_due(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plugin = Work()
    service = await start(make_service, plugin)
    await enqueue(service, work(1, run_at_ms=clock.now_ms() + 14 * 24 * 3600 * 1000))
    await settled(service)
    before = list(plugin.runs)

    clock.advance(14 * 24 * 3600)
    await settled(service)

    assert (before, plugin.runs) == ([], [1])


async def test_a_recurring_job_runs_once_an_interval(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plugin = Work(every_s=60)
    service = await start(make_service, plugin)
    for _ in range(3):
        await settled(service)
        clock.advance(60)
    await settled(service)

    assert plugin.runs == [None] * 4
    assert await states(service) == [("ready", 0)]


async def test_an_effect_and_its_jobs_end_are_one(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    async def fail_inside(ctx: JobContext, job: Job) -> None:
        async with ctx.completing(job) as tx:
            await tx.insert("core_lanes", {"lane": "effect", "owner": "x", "leased_until_ms": 0})
            if job.attempts == 1:
                raise RuntimeError("between the effect and its commit")

    plugin = Work(fail_inside)
    service = await start(make_service, plugin)
    await enqueue(service, work(1))
    await settled(service)
    first = await _effects(service)
    clock.advance(3)
    await settled(service)

    assert (first, await _effects(service)) == (0, 1)
    assert await states(service) == []


async def test_who_lost_a_job_to_another_runner_can_not_commit(
    make_service: ServiceFactory,
) -> None:
    taken = asyncio.Event()

    async def be_slow(ctx: JobContext, job: Job) -> None:
        await taken.wait()
        async with ctx.completing(job) as tx:
            await tx.insert("core_lanes", {"lane": "effect", "owner": "x", "leased_until_ms": 0})

    plugin = Work(be_slow)
    service = await start(make_service, plugin)
    await enqueue(service, work(1))
    await until(_that(lambda: plugin.runs))
    future_ms = service.clock.now_ms() + 10**6
    await change(service, "leased_by = 'another', leased_until_ms = :until_ms", until_ms=future_ms)

    taken.set()
    await service.stop()

    async with reopened(service):
        assert await _effects(service) == 0
        assert await states(service) == [("running", 0)]


async def test_the_work_of_a_dead_runner_goes_on_when_its_lease_has_run_out(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plugin = Work()
    service = await start(make_service, plugin, jobs={"runner": "none"})
    await enqueue(service, work(1))
    await change(
        service,
        "state = 'running', leased_by = 'run_gone', leased_until_ms = :until_ms",
        until_ms=clock.now_ms() + 10_000,
    )
    successor = await start(make_service, plugin, database_url=service.settings.database_url)
    clock.advance(9.9)
    await asyncio.sleep(0.2)  # a few looks of the sweeper, none of which may take it
    before = list(plugin.runs)

    clock.advance(0.2)
    await until(_that(lambda: plugin.runs))
    await settled(successor)

    assert (before, plugin.runs) == ([], [1])


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


async def test_stopping_waits_for_what_runs_and_leaves_the_rest(
    make_service: ServiceFactory,
) -> None:
    ended: list[int] = []

    async def take_a_moment(_ctx: JobContext, job: Job) -> None:
        await asyncio.sleep(0.2)
        ended.append(job.payload["n"])

    plugin = Work(take_a_moment)
    service = await start(make_service, plugin)
    await enqueue(service, work(1), work(2), work(3))
    await until(_that(lambda: plugin.runs))

    await service.stop()

    assert ended == [1]
    async with reopened(service):
        assert await states(service) == [("ready", 0), ("ready", 0)]


async def test_a_stuck_lane_does_not_delay_another(make_service: ServiceFactory) -> None:
    release = asyncio.Event()

    async def block_on_one(_ctx: JobContext, job: Job) -> None:
        if job.lane == "one:stuck":
            await release.wait()

    plugin = Work(block_on_one)
    service = await start(make_service, plugin)
    await enqueue(service, work(1, lane="one:stuck"))
    await until(_that(lambda: plugin.runs))

    await enqueue(service, work(2, lane="one:free"))
    await until(_that(lambda: 2 in plugin.runs))
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


async def test_a_job_that_killed_its_runner_each_time_is_buried(
    make_service: ServiceFactory,
) -> None:
    plugin = Work(max_attempts=3)
    service = await start(make_service, plugin, jobs={"runner": "none"})
    await enqueue(service, work(1))
    await change(service, "deliveries = 100")

    successor = await start(make_service, plugin, database_url=service.settings.database_url)
    await settled(successor)

    assert plugin.runs == []
    assert [state for state, _ in await states(successor)] == ["dead"]


async def test_many_wakes_of_a_lane_at_once_are_one_drain(make_service: ServiceFactory) -> None:
    plugin = Work()
    service = await start(make_service, plugin)

    await asyncio.gather(*(enqueue(service, work(n)) for n in range(50)))
    await settled(service)

    assert sorted(plugin.runs) == list(range(50))


async def _effects(service: Service) -> int:
    async with service.db.read() as tx:
        return int(await tx.fetch_val("SELECT COUNT(*) FROM core_lanes WHERE lane = 'effect'"))


def _that(found: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    async def look() -> Any:
        return found()

    return look
