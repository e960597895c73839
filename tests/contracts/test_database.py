"""What a transaction of `Database` promises, over SQLite and PostgreSQL."""

import asyncio

import asyncpg
import pytest

from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.work import PATIENCE_S, until
from tests.contracts.things import add, names
from tests.expectations import failing

Backend = SQLiteDatabases | PostgresDatabases


async def test_what_a_block_wrote_is_there_after_it(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "kept")

    assert await names(db) == ["kept"]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, asyncio.CancelledError])
async def test_a_block_that_raises_is_rolled_back(db: Database, error: type[BaseException]) -> None:
    async with failing(error), db.transaction() as tx:
        await add(tx, 1)
        raise error

    assert await names(db) == []


async def test_a_statement_that_fails_rolls_everything_back(db: Database) -> None:
    async with failing(Exception, match=r"(?i)nowhere"), db.transaction() as tx:
        await add(tx, 1)
        await tx.execute("INSERT INTO nowhere VALUES (1)")

    assert await names(db) == []


async def test_what_is_not_committed_is_seen_by_nobody_else(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
        assert await names(db) == []


async def open_transactions(db: Database, url: str) -> int:
    """How many connections stand inside a transaction."""
    if db.dialect == "sqlite":
        return sum(connection.in_transaction for connection in db._backend._connections)
    other = await asyncpg.connect(url)
    try:
        return int(
            await other.fetchval(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
        )
    finally:
        await other.close()


async def test_200_cancellations_leave_the_pool_whole_and_no_transaction_open(
    db: Database, url: str
) -> None:
    async def work(number: int) -> None:
        async with db.transaction() as tx:
            await add(tx, number)
            await tx.fetch_all("SELECT * FROM things")
            await tx.execute("UPDATE things SET number = number + 1")

    for number in range(200):
        task = asyncio.create_task(work(number))
        # Each is cancelled at another step, from before BEGIN to after COMMIT.
        for _ in range(number % 25):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async with asyncio.timeout(PATIENCE_S):
        async with db.transaction() as first:
            await first.execute("SELECT 1")
            async with db.read() as second:
                await second.execute("SELECT 1")

    # A server notices in its own time that a cancelled caller's connection is gone.
    async def none_open() -> bool:
        return await open_transactions(db, url) == 0

    await until(none_open)


async def test_a_cancellation_while_waiting_for_a_connection_loses_none(db: Database) -> None:
    for _ in range(20):
        async with db.transaction(), db.read():
            waiting = [asyncio.create_task(_read(db)) for _ in range(5)]
            waiting += [asyncio.create_task(_write(db)) for _ in range(5)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(_write(db) for _ in range(5)), *(_read(db) for _ in range(5)))


async def _read(db: Database) -> None:
    async with db.read() as tx:
        await tx.execute("SELECT 1")


async def _write(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("SELECT 1")


async def test_fifty_increments_side_by_side_lose_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.insert("things", {"id": 1, "name": "counter", "number": 0})

    async def increment() -> None:
        async with db.transaction() as tx:
            lock = "" if tx.dialect == "sqlite" else " FOR UPDATE"
            number = await tx.fetch_val(f"SELECT number FROM things WHERE id = 1{lock}")
            await tx.execute("UPDATE things SET number = :new WHERE id = 1", {"new": number + 1})

    await asyncio.gather(*(increment() for _ in range(50)))

    async with db.read() as tx:
        assert await tx.fetch_val("SELECT number FROM things") == 50


async def test_a_named_lock_keeps_transactions_apart(db: Database) -> None:
    async def add_if_room() -> None:
        async with db.transaction() as tx:
            await tx.lock("three things")
            count = int(await tx.fetch_val("SELECT COUNT(*) FROM things"))
            if count < 3:
                await add(tx, count)

    await asyncio.gather(*(add_if_room() for _ in range(10)))

    assert len(await names(db)) == 3


async def test_of_two_that_wait_for_each_other_one_is_told_to_try_again(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
        await add(tx, 2)
    holds = {1: asyncio.Event(), 2: asyncio.Event()}

    async def touch(first: int, second: int) -> str:
        statement = "UPDATE things SET number = 0 WHERE id = :id"
        try:
            async with db.transaction() as tx:
                await tx.execute(statement, {"id": first})
                holds[first].set()
                if db.dialect == "postgresql":
                    # SQLite has one writer: nobody holds what another waits for.
                    await holds[second].wait()
                await tx.execute(statement, {"id": second})
        except DatabaseUnavailable:
            return "again"
        return "done"

    ends = await asyncio.gather(touch(1, 2), touch(2, 1))

    assert sorted(ends) == (["again", "done"] if db.dialect == "postgresql" else ["done", "done"])


async def test_reads_see_the_newest_commits(db: Database) -> None:
    async with db.read() as reader:
        for number in range(3):
            async with db.transaction() as tx:
                await add(tx, number)
            assert await reader.fetch_val("SELECT COUNT(*) FROM things") == number + 1


# ---- savepoints and callbacks -------------------------------------------------------------------


async def test_a_savepoint_undoes_only_what_is_inside(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "before")
        async with failing(ZeroDivisionError), tx.savepoint():
            await add(tx, 2, "inside")
            raise ZeroDivisionError
        await add(tx, 3, "after")

    assert await names(db) == ["before", "after"]


async def test_a_savepoint_that_ends_well_is_kept(db: Database) -> None:
    async with db.transaction() as tx, tx.savepoint():
        await add(tx, 1, "inside")

    assert await names(db) == ["inside"]


async def test_an_outer_savepoint_undoes_what_came_before_a_failed_inner_one(db: Database) -> None:
    async with db.transaction() as tx, failing(LookupError), tx.savepoint():
        await add(tx, 1, "outer")
        with pytest.raises(ZeroDivisionError):
            async with tx.savepoint():
                raise ZeroDivisionError
        raise LookupError

    assert await names(db) == []


async def test_a_failed_statement_in_a_savepoint_spares_the_transaction(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "first")
        async with failing(Exception, match=r"(?i)unique"), tx.savepoint():
            await add(tx, 1, "again")

    assert await names(db) == ["first"]


async def test_callbacks_run_after_the_commit_and_in_order(db: Database) -> None:
    called: list[str] = []
    async with db.transaction() as tx:
        tx.on_commit(lambda: called.append("first"))
        tx.on_commit(lambda: called.append("second"))
        before = list(called)

    assert (before, called) == ([], ["first", "second"])


async def test_callbacks_of_a_rolled_back_transaction_never_run(db: Database) -> None:
    called: list[int] = []
    async with failing(ZeroDivisionError), db.transaction() as tx:
        tx.on_commit(lambda: called.append(1))
        raise ZeroDivisionError

    assert called == []


async def test_callbacks_of_a_rolled_back_savepoint_never_run(db: Database) -> None:
    called: list[str] = []
    async with db.transaction() as tx:
        tx.on_commit(lambda: called.append("outer"))
        async with failing(ZeroDivisionError), tx.savepoint():
            tx.on_commit(lambda: called.append("inner"))
            raise ZeroDivisionError

    assert called == ["outer"]


async def test_a_commit_during_which_the_caller_is_cancelled_has_its_callbacks(
    db: Database,
) -> None:
    async def write(number: int) -> None:
        async with db.transaction() as tx:
            await add(tx, number)
            tx.on_commit(lambda: called.append(number))

    called: list[int] = []
    for number in range(60):
        task = asyncio.create_task(write(number))
        for _ in range(number % 20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT id FROM things ORDER BY id")
    assert [row["id"] for row in rows] == sorted(called)
