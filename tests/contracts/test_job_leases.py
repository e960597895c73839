"""What becomes of jobs when runners, plugins and the database come and go, on both databases."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.jobs import (
    Job,
    JobContext,
    JobSpec,
    LaneSpec,
    NewJob,
    Retry,
    Stopping,
    lanes,
    store,
)
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory

LEASE_S = 10

#: Rows of jobs that the transaction has read by going through the table.
READ_IN_SEQUENCE = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'core_jobs'"

#: Executions after which PostgreSQL keeps a statement's plan, and one more.
UNTIL_PLANNED = 7


class Work:
    """A plugin with one kind of job; `fail` is raised by the next runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.fail: list[Exception] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [JobSpec("work", self.run, max_attempts=3, jitter=0)]

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return [LaneSpec("own", exclusive=True), LaneSpec("many", batch=10)]

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        self.runs += 1
        await self.may_end.wait()
        if self.fail:
            raise self.fail.pop(0)


async def enqueue(service: Service, lane: str = "default", count: int = 1) -> None:
    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, *(NewJob("work", lane=lane) for _ in range(count)))


async def states(service: Service) -> list[str]:
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT state FROM core_jobs WHERE name = 'work'")
    return [row["state"] for row in rows]


async def start(
    make_service: ServiceFactory,
    work: Work | None,
    beside: Service | None = None,
    **settings: object,
) -> Service:
    """A service with the plugin, if there is one, on the database of the one `beside`."""
    if beside is not None:
        settings["database_url"] = beside.settings.database_url
    plugins = [] if work is None else [("work", work)]
    return await make_service(extra_plugins=plugins, **settings)


async def test_waits_that_do_not_count_bury_no_job(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    work = Work()
    work.fail = [Retry(1, counts=False) for _ in range(30)]
    service = await start(make_service, work)
    await enqueue(service)
    for _ in range(31):
        await settled(service)
        clock.advance(1)

    assert work.runs == 31
    assert await states(service) == []


async def test_graceful_restarts_are_no_crashes(make_service: ServiceFactory) -> None:
    work = Work()
    work.may_end.clear()
    service = await start(make_service, work, jobs={"sweep_s": 0.05, "grace_s": 0.01})
    await enqueue(service)
    for _ in range(12):
        before = work.runs

        async def running(known: int = before) -> bool:
            return work.runs > known

        await until(running)
        await service.stop()
        await service.start()
    work.may_end.set()
    await settled(service)

    assert await states(service) == []


async def test_a_job_whose_outcome_could_not_be_written_comes_again_after_its_lease(
    make_service: ServiceFactory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work()
    service = await start(make_service, work)

    complete, put_back = store.complete, store.reschedule
    refused: list[str] = []

    async def complete_not(tx: Tx, jobs: Sequence[Job], **options: Any) -> bool:
        if jobs[0].name == "work":
            refused.append("complete")
            raise DatabaseUnavailable("away")
        return await complete(tx, jobs, **options)

    async def put_back_not(tx: Tx, back: Sequence[store.Waiting], **options: Any) -> set[str]:
        if any(one.job.name == "work" for one in back):
            refused.append("put_back")
            raise DatabaseUnavailable("away")
        return await put_back(tx, back, **options)

    async def both_refused() -> bool:
        return refused == ["complete", "put_back"]

    with monkeypatch.context() as patch:
        patch.setattr(store, "complete", complete_not)
        patch.setattr(store, "reschedule", put_back_not)
        await enqueue(service)
        await until(both_refused)

    # The runner lives and renews what it works on; this job is not among it any more.
    async def ran_again() -> bool:
        clock.advance(1)
        return work.runs == 2

    await until(ran_again)
    await settled(service)

    assert await states(service) == []


async def test_a_long_job_keeps_its_lease(make_service: ServiceFactory, clock: FakeClock) -> None:
    work = Work()
    work.may_end.clear()
    service = await start(make_service, work, jobs={"sweep_s": 0.02, "lease_s": 0.3})
    await enqueue(service)

    async def held_until() -> int:
        async with service.db.read() as tx:
            return int(
                await tx.fetch_val(
                    "SELECT COALESCE(MAX(leased_until_ms), 0) FROM core_jobs WHERE name = 'work'"
                )
            )

    for _ in range(5):
        clock.advance(0.2)

        async def renewed() -> bool:
            return await held_until() == clock.now_ms() + 300

        await until(renewed)
    work.may_end.set()
    await settled(service)

    assert work.runs == 1


async def test_jobs_of_a_plugin_that_is_not_loaded_wait_for_it(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    work = Work()
    quiet = await start(make_service, work, jobs={"runner": "none"})
    await enqueue(quiet, count=2)
    without = await start(make_service, None, quiet)
    for _ in range(20):
        clock.advance(LEASE_S)
        await asyncio.sleep(0.01)
    waiting = await states(quiet)
    await without.stop()

    loaded = await start(make_service, work, quiet)
    await settled(loaded)

    assert waiting == ["ready", "ready"]
    assert work.runs == 2


async def test_a_lane_that_another_runner_owns_is_not_asked_for_without_pause(
    make_service: ServiceFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work()
    work.may_end.clear()
    owner = await start(make_service, work)
    await enqueue(owner, "own", 3)

    async def running() -> bool:
        return work.runs == 1

    await until(running)
    asked = 0
    own_lane = lanes.own

    async def count(*arguments: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return await own_lane(*arguments, **options)

    monkeypatch.setattr(lanes, "own", count)
    await start(make_service, work, owner, jobs={"sweep_s": 10})
    await asyncio.sleep(0.3)
    work.may_end.set()
    await settled(owner)

    assert asked < 10


async def test_a_job_that_was_lost_does_not_keep_its_batch_from_being_put_back(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    work = Work()
    work.may_end.clear()
    service = await start(make_service, work)
    await enqueue(service, "many", 3)

    async def running() -> bool:
        return work.runs == 1

    await until(running)
    async with service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_jobs SET leased_by = 'another' WHERE job_id ="
            " (SELECT MIN(job_id) FROM core_jobs WHERE name = 'work')"
        )
    work.fail = [ZeroDivisionError()]
    work.may_end.set()

    async def put_back() -> bool:
        return sorted(await states(service)) == ["ready", "ready", "running"]

    assert await until(put_back)


async def test_a_long_batch_may_end_early_when_its_runner_stops(
    make_service: ServiceFactory,
) -> None:
    class Long(Work):
        async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
            self.runs += 1
            async with ctx.completing(jobs[0]):
                pass

            async def asked_to_stop() -> bool:
                return ctx.stopping

            await until(asked_to_stop)
            raise Stopping

    work = Long()
    service = await start(make_service, work)
    await enqueue(service, "many", 3)

    async def begun() -> bool:
        return work.runs == 1 and len(await states(service)) == 2

    await until(begun)
    await service.stop()
    await service.db.connect()
    async with service.db.read() as tx:
        left = await tx.fetch_all(
            "SELECT state, attempts, deliveries FROM core_jobs WHERE name = 'work'"
        )
    await service.db.disconnect()

    assert [(row["state"], row["attempts"], row["deliveries"]) for row in left] == [
        ("ready", 0, 0),
        ("ready", 0, 0),
    ]


async def _forget_plans(service: Service) -> None:
    """Those of earlier tests, whose connection this is, were made for other tables."""
    if service.db.dialect == "postgresql":
        async with service.db.read() as tx:
            await tx.execute("DISCARD PLANS")


async def test_a_hundred_thousand_waiting_jobs_cost_a_sweep_and_a_look_little(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    """Waiting for later, before the others in their lane, is the worst case for both searches."""
    service = await start(make_service, Work(), jobs={"runner": "none"})
    await _forget_plans(service)
    far_ms = clock.now_ms() + 10**9
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    async with service.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO core_jobs (job_id, lane, priority, run_at_ms, name, payload, state,"
            f" attempts, deliveries, created_at_ms) {numbers} SELECT 'job_' || i, 'many', 0,"
            " CAST(:far_ms AS BIGINT) + i, 'work', '{}', 'ready', 0, 0, 0 FROM n",
            {"far_ms": far_ms},
        )
    await enqueue(service, "many")

    async def best_ms(search: Callable[[Tx], Awaitable[Any]]) -> float:
        times = []
        for _ in range(5):
            async with service.db.read() as tx:
                began = time.perf_counter()
                await search(tx)
                times.append((time.perf_counter() - began) * 1000)
        return min(times)

    async def count(tx: Tx) -> None:
        await tx.fetch_val("SELECT COUNT(run_at_ms + attempts) AS count FROM core_jobs")

    found = await _look(service)
    sweep = await best_ms(lanes.with_work)
    look = await best_ms(lambda tx: store.read_lane(tx, "many"))
    everything = await best_ms(count)

    assert found == store.LaneSnapshot(((0, far_ms + 1), (50, clock.now_ms())), None)
    assert max(sweep, look) < everything / 3


async def test_lanes_are_looked_at_without_reading_all_jobs_when_few_grew_to_many(
    make_service: ServiceFactory,
) -> None:
    """Queues are empty most of the time, and PostgreSQL plans for that until it gathers statistics."""
    # Without a runner, whose sweeps would be counted too.
    service = await make_service(jobs={"runner": "none"})
    if service.db.dialect == "sqlite":
        pytest.skip("SQLite's plans don't depend on how many rows there were")
    await _forget_plans(service)

    async with service.db.transaction() as tx:
        for _ in range(UNTIL_PLANNED):
            await _look_everywhere(tx)
        await service.jobs.enqueue(
            tx, *(NewJob("work", lane=f"lane-{number % 50}") for number in range(2000))
        )
        await tx.execute(
            "INSERT INTO core_lanes (lane, owner, leased_until_ms)"
            " SELECT DISTINCT lane, 'run_1', CAST(9 AS BIGINT) FROM core_jobs"
        )
        before = await tx.fetch_val(READ_IN_SEQUENCE)
        everywhere, owned = await _look_everywhere(tx)
        after = await tx.fetch_val(READ_IN_SEQUENCE)

    assert {"lane-7", "lane-49"} <= everywhere.keys() & owned.keys()
    assert after == before


async def _look_everywhere(tx: Tx) -> tuple[dict[str, int], dict[str, int]]:
    everywhere = await lanes.with_work(tx)
    owned = await lanes.owned_with_work(tx, "run_1")
    await store.read_lane(tx, "lane-7")
    return everywhere, owned


async def _look(service: Service) -> store.LaneSnapshot:
    async with service.db.read() as tx:
        return await store.read_lane(tx, "many")


async def test_an_owner_hears_of_work_that_another_process_adds_to_its_lane(
    make_service: ServiceFactory,
) -> None:
    """Sooner than by its sweep, which it makes here once in ten minutes."""
    work = Work()
    owner = await start(make_service, work, jobs={"sweep_s": 600})
    if owner.db.dialect == "sqlite":
        pytest.skip("on SQLite all who add jobs are one process")
    await enqueue(owner, "own")
    await settled(owner)
    other = await start(make_service, work, owner, jobs={"sweep_s": 600})

    await enqueue(other, "own")
    await settled(owner)

    assert work.runs == 2


async def test_what_was_claimed_beside_a_poison_is_not_buried_with_it(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    """Ten jobs are claimed together; the runner dies each time that it comes to the fifth."""

    class Fragile(Work):
        alive = True

        async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
            if any(job.payload.get("poison") for job in jobs):
                self.alive = False
            if not self.alive:
                # As dead as a process can be in a test: it never says what became of its jobs.
                await asyncio.Event().wait()

    quiet = await start(make_service, Work(), jobs={"runner": "none"})
    async with quiet.db.transaction() as tx:
        await quiet.jobs.enqueue(
            tx, *(NewJob("work", {"poison": n == 4}, lane="many") for n in range(10))
        )

    async def left() -> list[tuple[str, int]]:
        async with quiet.db.read() as tx:
            rows = await tx.fetch_all(
                "SELECT state, deliveries FROM core_jobs WHERE name = 'work' ORDER BY job_id"
            )
        return [(row["state"], row["deliveries"]) for row in rows]

    for _ in range(8):
        work = Fragile()
        service = await start(make_service, work, quiet, jobs={"sweep_s": 0.02, "grace_s": 0.01})

        async def dead_or_done(fragile: Fragile = work) -> bool:
            return not fragile.alive or all(state == "dead" for state, _ in await left())

        await until(dead_or_done)
        before = await left()
        await service.stop()
        # A process that dies releases nothing: its leases run out.
        async with quiet.db.transaction() as tx:
            await tx.execute(
                "UPDATE core_jobs SET state = 'running', leased_by = 'gone', leased_until_ms = 0,"
                " deliveries = deliveries + 1 WHERE state = 'ready'"
            )
        assert await left() == before

    assert [state for state, _ in await left()] == ["dead"]
