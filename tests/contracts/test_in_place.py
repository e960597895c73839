"""Transactions of few rows: on SQLite they are written on the event loop, and committed beside it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from msgsvc_core.db import Database, DatabaseUnavailable, WriteBatch

#: PostgreSQL's rows of a transaction that says for itself whether it waits; tests' databases never do.
OWN_SETTING = """
SELECT setting FROM pg_settings WHERE name = 'synchronous_commit' AND source = 'session'
"""

#: SQLite's number of the setting by which a commit is on disk when it returns.
FULL = 2

ALONE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    database = Database(url, pool_size=2)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute("CREATE TABLE things (name TEXT PRIMARY KEY)")
    yield database
    await database.disconnect()


async def names(db: Database) -> set[str]:
    async with db.read() as tx:
        return {row["name"] for row in await tx.fetch_all("SELECT name FROM things")}


async def add(db: Database, name: str, *, few: bool) -> None:
    async with db.transaction(inline=few) as tx:
        await tx.insert("things", {"name": name})


async def test_what_raises_is_undone_and_the_next_goes_on(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction(inline=True) as tx:
            await tx.insert("things", {"name": "a"})
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        async with db.transaction(inline=True):
            raise ZeroDivisionError
    await add(db, "b", few=True)
    await add(db, "c", few=False)

    assert await names(db) == {"b", "c"}


async def test_only_who_asks_for_it_does_not_wait_for_the_disk(db: Database) -> None:
    found = []
    for number, on_disk in enumerate([True, False, False, True]):
        async with db.transaction(inline=True, durable=on_disk) as tx:
            await tx.insert("things", {"name": str(number)})
            if tx.dialect == "sqlite":
                found.append(await tx.fetch_val("PRAGMA synchronous") == FULL)
                copies = await tx.fetch_val("PRAGMA wal_autocheckpoint") > 0
                assert copies is on_disk
            else:
                found.append(await tx.fetch_val(OWN_SETTING) is None)
        assert str(number) in await names(db)

    assert found == [True, False, False, True]


async def test_who_is_cancelled_between_statements_leaves_nothing(db: Database) -> None:
    begun = asyncio.Event()

    async def half() -> None:
        async with db.transaction(inline=True) as tx:
            await tx.insert("things", {"name": "a"})
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(half())
    await begun.wait()
    other = asyncio.create_task(add(db, "b", few=True))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await other

    assert await names(db) == {"b"}


async def test_who_is_cancelled_at_any_moment_leaves_all_or_nothing(db: Database) -> None:
    """Cancelled after so many turns of the loop, from before the beginning until after the commit."""

    async def both(number: int) -> None:
        async with db.transaction(inline=True) as tx:
            await tx.insert("things", {"name": f"{number}a"})
            await asyncio.sleep(0)
            await tx.insert("things", {"name": f"{number}b"})

    for turns in range(30):
        task = asyncio.create_task(both(turns))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    found = await names(db)
    assert {name[:-1] for name in found if name.endswith("a")} == {
        name[:-1] for name in found if name.endswith("b")
    }
    await add(db, "last", few=False)
    assert "last" in await names(db)


async def test_all_ways_of_writing_side_by_side_lose_nothing(db: Database) -> None:
    async def write(number: int) -> None:
        unit = WriteBatch()
        unit.insert("things", {"name": f"unit {number}"})
        await db.write(unit)

    await asyncio.gather(
        *(add(db, f"row {number}", few=number % 2 == 0) for number in range(100)),
        *(write(number) for number in range(50)),
    )

    assert len(await names(db)) == 150


async def test_few_rows_are_asked_for_as_by_a_read(db: Database) -> None:
    await add(db, "a", few=True)

    [row] = await db.read_inline(lambda tx: tx.fetch_all("SELECT name FROM things"))

    assert row["name"] == "a"


async def test_a_database_that_is_closed_says_so(db: Database) -> None:
    await db.disconnect()

    with pytest.raises(DatabaseUnavailable):
        await add(db, "a", few=True)
    with pytest.raises(DatabaseUnavailable):
        await db.read_inline(lambda tx: tx.fetch_all("SELECT 1"))
    await db.connect()


@ALONE
async def test_while_another_process_writes_the_loop_goes_on(db: Database, url: str) -> None:
    other = sqlite3.connect(Path(url.removeprefix("sqlite:///")), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(add(db, "a", few=True))
    for _ in range(20):
        await asyncio.sleep(0.01)
    # Had it waited for the file on the loop's thread, nobody would have come here before it gave up.
    assert not waits.done()
    other.execute("COMMIT")
    other.close()
    await waits

    assert await names(db) == {"a"}


@ALONE
async def test_commit_that_fails_is_undone_and_the_next_goes_on(db: Database) -> None:
    """A foreign key that is looked at with the commit fails the commit itself."""
    async with db.transaction() as tx:
        await tx.execute(
            "CREATE TABLE parts (of TEXT REFERENCES things (name) DEFERRABLE INITIALLY DEFERRED)"
        )
    with pytest.raises(sqlite3.IntegrityError):
        async with db.transaction(inline=True) as tx:
            await tx.insert("parts", {"of": "nothing"})
    await add(db, "b", few=True)
    await add(db, "c", few=False)

    assert await names(db) == {"b", "c"}
