"""A SQLite file becomes shorter when much was deleted, in steps that others hardly wait for."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from msgsvc_core.db import Database, Tx
from msgsvc_core.db.shrinking import LEAST_SPARE, count_excess, read_space, shrink_some
from msgsvc_core.db.sqlite import SQLiteBackend
from msgsvc_core.jobs import Job, JobContext
from msgsvc_core.jobs.steps import (
    LEAST_STEP,
    MOST_FREE_PAGES,
    STEP,
    STEP_S,
    in_steps,
    next_step,
    repeat,
)
from msgsvc_devkit import FakeClock, MemoryCore, settled
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.fixtures import ServiceFactory
from tests.contracts.work import Work, enqueue, start, work

#: Rows of a page each.
ROWS = 4 * LEAST_SPARE


async def fill_and_delete(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE things (number INTEGER PRIMARY KEY, filler TEXT)")
        rows = [{"number": number, "filler": "x" * 4000} for number in range(ROWS)]
        await tx.insert_many("things", rows)
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM things WHERE number < :most", {"most": ROWS - 10})


async def test_the_file_shrinks_to_its_rows_and_a_reserve(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    db = Database(f"sqlite:///{path}")
    await db.connect()
    try:
        await fill_and_delete(db)
        async with db.read() as tx:
            before = await read_space(tx)
        await repeat(JobInTest(db), partial(shrink_some, db), least=10, most=500)
        async with db.read() as tx:
            after = await read_space(tx)
            left = await tx.fetch_val("SELECT COUNT(*) AS count FROM things")
    finally:
        await db.disconnect()

    assert before.excess_pages > LEAST_SPARE
    assert after.excess_pages == 0
    assert after.free_pages == LEAST_SPARE
    assert left == 10
    assert path.stat().st_size == after.pages * after.page_bytes
    assert after.pages < before.pages / 2


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_the_hourly_purge_ends_with_a_short_file(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service()
    await settled(service)
    await fill_and_delete(service.db)
    clock.advance(3600)
    await settled(service)

    assert await count_excess(service.db) == 0


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_job_leaves_a_file_with_fewer_free_pages_than_it_names(
    make_service: ServiceFactory,
) -> None:
    left: list[int] = []

    async def shrink(ctx: JobContext, _job: Job) -> None:
        for above in (ROWS, LEAST_SPARE):
            await ctx.shrink_file(above=above)
            left.append(await count_excess(service.db))

    service = await start(make_service, Work(shrink))
    await settled(service)
    await fill_and_delete(service.db)
    before = await count_excess(service.db)
    await enqueue(service, work())
    await settled(service)

    assert left == [before, 0]
    assert before > LEAST_SPARE


async def test_a_file_is_looked_at_while_much_is_deleted(core: MemoryCore) -> None:
    ctx, steps = JobInTest(core.db), iter(range(50))

    async def step(_tx: Tx, most: int) -> int:
        return most if next(steps) < 45 else 0

    await in_steps(ctx, step)

    assert ctx.shrunk == [MOST_FREE_PAGES] * 2


async def test_a_step_frees_no_more_pages_than_it_is_allowed(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'm.db'}")
    await db.connect()
    try:
        await fill_and_delete(db)
        async with db.read() as tx:
            before = await read_space(tx)
            freed, _ = await shrink_some(db, 70)
            after = await read_space(tx)
    finally:
        await db.disconnect()

    assert freed == 70
    # A page of the map of pages may go with them.
    assert before.pages - after.pages in (70, 71)


async def test_a_file_of_an_earlier_release_is_left_as_long_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE old (number INTEGER)")
    db = Database(f"sqlite:///{path}")
    await db.connect()
    try:
        await fill_and_delete(db)
        async with db.read() as tx:
            space = await read_space(tx)
        freed, _ = await shrink_some(db, 500)
    finally:
        await db.disconnect()

    assert (space.can_shrink, freed) == (False, 0)
    assert space.excess_pages > 0


async def test_two_processes_that_make_the_file_find_it_able_to_shrink(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    backends = [SQLiteBackend(path, "FULL") for _ in range(2)]
    try:
        for backend in backends:
            await backend.connect()
        with closing(sqlite3.connect(path)) as connection:
            (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    finally:
        for backend in backends:
            await backend.disconnect()

    assert mode == 2


@pytest.mark.parametrize(
    ("rows", "took_s", "expected"),
    [
        (STEP, 3 * STEP_S, STEP // 2),
        (STEP // 2, STEP_S, STEP // 2),
        (STEP // 2, STEP_S / 4, STEP),
        (STEP, STEP_S / 4, STEP),
        (LEAST_STEP, 1.0, LEAST_STEP),
    ],
)
def test_steps_that_take_long_become_smaller(rows: int, took_s: float, expected: int) -> None:
    assert next_step(rows, STEP, took_s) == expected


def test_a_step_of_few_rows_stays_as_it_is() -> None:
    assert next_step(2, 2, 1.0) == 2


async def test_repeated_steps_begin_small_and_follow_the_time_that_they_take(
    core: MemoryCore,
) -> None:
    counts: list[int] = []
    took_s = iter([0.001, 0.001, 0.5, 0.5, 0.5, 0.01, 0.01])

    async def step(count: int) -> tuple[int, float]:
        counts.append(count)
        return count if len(counts) < 7 else 0, next(took_s)

    await repeat(JobInTest(core.db), step, least=10, most=100)

    assert counts == [10, 20, 40, 20, 10, 10, 10]


async def test_others_do_not_wait_long_for_a_step_of_a_file_that_is_nearly_all_free(
    tmp_path: Path,
) -> None:
    """As a ratio: 500 pages at once against the steps, in the same file."""
    db = Database(f"sqlite:///{tmp_path / 'm.db'}", synchronous="NORMAL")
    await db.connect()
    steps_s: list[float] = []

    async def noted(count: int) -> tuple[int, float]:
        done, took_s = await shrink_some(db, count)
        steps_s.append(took_s)
        # Thirty steps show it.
        return (done, took_s) if len(steps_s) < 30 else (0, 0.0)

    try:
        async with db.transaction() as tx:
            await tx.execute("CREATE TABLE things (number INTEGER PRIMARY KEY, filler TEXT)")
            await tx.execute(
                "INSERT INTO things SELECT value, hex(zeroblob(1900)) FROM"
                " (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n"
                " WHERE value < 60000) SELECT value FROM n)"
            )
        async with db.transaction() as tx:
            await tx.execute("DELETE FROM things WHERE number < 59990")
        at_once_s = await db.cut_free_pages(2000)
        await repeat(JobInTest(db), noted, least=10, most=1000)
    finally:
        await db.disconnect()

    assert sorted(steps_s)[len(steps_s) // 2] < at_once_s / 2
