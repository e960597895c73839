"""What every runner promises of jobs: when they run, how often, and what their end is one with."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgsvc_core.jobs import Job, JobContext, JobSpec, Retry, exponential
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from tests.contracts.work import (
    Work,
    change,
    enqueue,
    holds,
    on_every_runner,
    reopened,
    start,
    states,
    work,
)

pytestmark = on_every_runner


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


async def test_a_job_for_later_is_brought_forward_by_its_payload(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plugin = Work()
    service = await start(make_service, plugin)
    later_ms = clock.now_ms() + 24 * 3600 * 1000
    await enqueue(service, work(1, run_at_ms=later_ms), work(2, run_at_ms=later_ms))
    await settled(service)
    async with service.db.transaction() as tx:
        brought = await service.jobs.bring_forward(tx, work(1))
        other_lane = await service.jobs.bring_forward(tx, work(2, lane="three"))
    await settled(service)
    async with service.db.transaction() as tx:
        once_more = await service.jobs.bring_forward(tx, work(1))

    assert (brought, other_lane, once_more) == (True, False, False)
    assert plugin.runs == [1]


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
    await until(holds(lambda: plugin.runs))
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
    await until(holds(lambda: plugin.runs))
    await settled(successor)

    assert (before, plugin.runs) == ([], [1])


async def test_of_a_plugin_that_was_taken_out_recurring_jobs_go_and_others_wait(
    make_service: ServiceFactory,
) -> None:
    """Also one that a restored backup has as running."""

    class Tidying(Work):
        @hookimpl
        def register_jobs(self) -> Sequence[JobSpec]:
            every_hour = [JobSpec(name, self._run, every_s=3600) for name in ("tidy", "sweep")]
            return [*super().register_jobs(), *every_hour]

    service = await start(make_service, Tidying())
    await settled(service)
    await enqueue(service, work(1, run_at_ms=2**50))
    await service.stop()
    async with reopened(service), service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_jobs SET state = 'running', leased_by = 'run_gone', leased_until_ms = 0"
            " WHERE name = 'sweep'"
        )
    successor = await make_service(database_url=service.settings.database_url)

    async with successor.db.read() as tx:
        rows = await tx.fetch_all("SELECT DISTINCT name FROM core_jobs")
        counted = await successor.jobs.count_by_lane(
            tx, successor.clock.now_ms(), [spec.name for spec in successor.job_specs]
        )
    assert {"tidy", "sweep", "work"} & {row["name"] for row in rows} == {"work"}
    assert {
        (row["lane"], row["count"]) for row in counted if row["state"] == "without_handler"
    } == {("one", 1)}


async def test_stopping_waits_for_what_runs_and_leaves_the_rest(
    make_service: ServiceFactory,
) -> None:
    ended: list[int] = []

    async def work_until_stopping(ctx: JobContext, job: Job) -> None:
        await until(holds(lambda: ctx.stopping))
        ended.append(job.payload["n"])

    plugin = Work(work_until_stopping)
    service = await start(make_service, plugin)
    await enqueue(service, work(1), work(2), work(3))
    await until(holds(lambda: plugin.runs))

    await service.stop()

    assert ended == [1]
    async with reopened(service):
        assert await states(service) == [("ready", 0), ("ready", 0)]


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


async def test_a_recurring_job_that_was_buried_is_set_up_again_by_the_sweeper(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plugin = Work(every_s=60)
    service = await start(make_service, plugin)
    await settled(service)
    await change(service, "deliveries = 100")
    clock.advance(60)

    async def ran_again() -> bool:
        return len(plugin.runs) == 2

    await until(ran_again)
    await settled(service)

    assert sorted(state for state, _ in await states(service)) == ["dead", "ready"]


async def test_a_recurring_job_that_a_wrong_clock_put_far_off_runs_once_it_is_right(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    plugin = Work(every_s=60, backoff=exponential(max_s=60))
    service = await start(make_service, plugin)
    await settled(service)
    clock.set_by(30 * 24 * 3600)

    async def ran(times: int) -> bool:
        return len(plugin.runs) == times

    await until(partial(ran, 2))
    await settled(service)
    clock.set_by(-30 * 24 * 3600)
    await until(partial(ran, 3))
    await settled(service)

    assert len(plugin.runs) == 3
    assert [state for state, _ in await states(service)] == ["ready"]


async def test_a_recurring_job_of_an_earlier_release_is_removed_by_the_one_that_replaces_it(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    class NextRelease(Work):
        @hookimpl
        def register_jobs(self) -> Sequence[JobSpec]:
            return [JobSpec("work_2", self._run, every_s=60, replaces=("work",))]

    before = await start(make_service, Work(every_s=60))
    await settled(before)
    await enqueue(before, work(1, run_at_ms=clock.now_ms() + 1000))
    await before.stop()
    url = before.settings.database_url
    after = await start(make_service, plugin := NextRelease(), database_url=url)
    await settled(after)

    assert plugin.runs == [None]
    # What somebody has queued is another matter: only the one that recurs goes.
    assert await states(after) == [("ready", 0)]


async def _effects(service: Service) -> int:
    async with service.db.read() as tx:
        return int(await tx.fetch_val("SELECT COUNT(*) FROM core_lanes WHERE lane = 'effect'"))
