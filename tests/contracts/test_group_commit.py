"""What `Database.write` promises: units of many callers in one commit, each as if it were alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.db import (
    ConstraintViolation,
    Database,
    DatabaseUnavailable,
    LockTimeout,
    UniqueViolation,
    WriteBatch,
)
from msgsvc_core.db.writer import UNITS_PER_BATCH
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.work import PATIENCE_S, until

Backend = SQLiteDatabases | PostgresDatabases

TABLES = (
    "CREATE TABLE things (id BIGINT PRIMARY KEY, name TEXT, weight SMALLINT)",
    "CREATE TABLE pages (number BIGINT PRIMARY KEY, text TEXT)",
    "CREATE TABLE claims (owner TEXT, key TEXT, note TEXT, PRIMARY KEY (owner, key))",
)


@pytest.fixture
async def db(backend: Backend) -> AsyncIterator[Database]:
    url = await backend.empty()
    database = Database(url, pool_size=4)
    await database.connect()
    async with database.transaction() as tx:
        for table in TABLES:
            await tx.execute(table)
    yield database
    await database.disconnect()
    await backend.give_back(url)


def thing(number: int, **more: Any) -> WriteBatch:
    unit = WriteBatch()
    unit.insert("things", {"id": number, "name": f"thing {number}", **more})
    return unit


def claiming(key: str, number: int) -> WriteBatch:
    unit = thing(number)
    unit.require_new(
        "claims", {"owner": "me", "key": key, "note": str(number)}, key=("owner", "key")
    )
    return unit


async def ids(db: Database) -> list[int]:
    async with db.read() as tx:
        return [row["id"] for row in await tx.fetch_all("SELECT id FROM things ORDER BY id")]


async def outcomes(db: Database, *units: WriteBatch) -> list[type[BaseException] | None]:
    """What became of units that were handed over at the same time, by kind."""
    found = await asyncio.gather(*map(db.write, units), return_exceptions=True)
    return [None if outcome is None else type(outcome) for outcome in found]


async def test_a_unit_is_there_when_write_returns(db: Database) -> None:
    await db.write(thing(1))

    assert await ids(db) == [1]


async def test_rows_of_several_tables_and_columns_are_written_with_one_another(
    db: Database,
) -> None:
    heavy = thing(2, weight=7)
    heavy.insert("claims", {"owner": "me", "key": "a"})

    assert await outcomes(db, thing(1), heavy, thing(3, weight=None)) == [None, None, None]

    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT id, name, weight FROM things ORDER BY id")
        claims = await tx.fetch_val("SELECT COUNT(*) AS count FROM claims")
    assert [tuple(row[name] for name in ("id", "name", "weight")) for row in rows] == [
        (1, "thing 1", None),
        (2, "thing 2", 7),
        (3, "thing 3", None),
    ]
    assert claims == 1


async def test_thousands_at_once_are_all_written(db: Database) -> None:
    count = 2 * UNITS_PER_BATCH + 1

    assert set(await outcomes(db, *map(thing, range(count)))) == {None}

    assert await ids(db) == list(range(count))


async def test_units_that_come_together_share_their_commits(db: Database) -> None:
    commits = 0
    commit = db._writer._batches.commit

    async def counted(units: Any, until_s: float) -> Any:
        nonlocal commits
        commits += 1
        return await commit(units, until_s)

    db._writer._batches.commit = counted  # type: ignore[method-assign] # counts, and hands on
    await outcomes(db, *map(thing, range(100)))

    assert commits == 1


async def test_a_unit_that_a_constraint_refuses_fails_alone(db: Database) -> None:
    both = thing(3)
    both.insert("things", {"id": 1, "name": "a second one"})

    assert await outcomes(db, thing(1), thing(2), both, thing(4)) == [
        None,
        None,
        ConstraintViolation,
        None,
    ]

    assert await ids(db) == [1, 2, 4]


@pytest.mark.parametrize("name", ["half a letter \ud800", 7**40, object()])
async def test_a_unit_whose_value_the_database_can_not_hold_fails_alone(
    db: Database, name: Any
) -> None:
    found = await outcomes(db, thing(1), thing(2, weight=name), claiming("a", 3))

    assert found[0] is None
    assert found[1] is not None
    assert found[2] is None
    assert await ids(db) == [1, 3]


async def test_a_callback_that_raises_leaves_nobody_without_an_answer(db: Database) -> None:
    units = [thing(1), thing(2), thing(3)]
    called: list[str] = []
    units[1].on_commit(lambda: 1 // 0)  # type: ignore[arg-type, return-value] # it returns nothing
    units[1].on_commit(lambda: called.append("after the fault"))
    async with asyncio.timeout(PATIENCE_S):
        assert await outcomes(db, *units) == [None, None, None]
        async with db.transaction() as tx:
            tx.on_commit(lambda: 1 // 0)  # type: ignore[arg-type, return-value] # it returns nothing
            await tx.write(thing(4))

    assert called == ["after the fault"]
    assert await ids(db) == [1, 2, 3, 4]


async def test_a_claim_has_one_winner_whoever_comes_at_the_same_time(db: Database) -> None:
    found = await outcomes(db, *(claiming("a", number) for number in range(20)))

    assert found.count(None) == 1
    assert found.count(UniqueViolation) == 19
    assert await ids(db) == [found.index(None)]


async def test_a_claim_that_was_taken_before_leaves_the_unit_unwritten(db: Database) -> None:
    await db.write(claiming("a", 1))

    assert await outcomes(db, claiming("a", 2), claiming("b", 3), thing(4)) == [
        UniqueViolation,
        None,
        None,
    ]

    assert await ids(db) == [1, 3, 4]


async def test_a_claim_may_stand_alone_and_beside_units_without_one(db: Database) -> None:
    alone, numbered = WriteBatch(), claiming("b", 2)
    alone.require_new("claims", {"owner": "me", "key": "a", "note": "1"}, key=("owner", "key"))
    numbered.insert("pages", {"number": 7, "text": "seven"})

    assert await outcomes(db, alone, numbered, thing(3), claiming("a", 4)) == [
        None,
        None,
        None,
        UniqueViolation,
    ]
    assert await ids(db) == [2, 3]


async def test_claims_of_several_tables_are_won_each(db: Database) -> None:
    page, other = thing(2), thing(3)
    for unit in (page, other):
        unit.require_new("pages", {"number": 1, "text": "one"}, key=("number",))

    assert await outcomes(db, claiming("a", 1), page, other) == [None, None, UniqueViolation]
    assert await ids(db) == [1, 2]


async def test_a_claim_of_a_unit_that_is_refused_stays_free(db: Database) -> None:
    await db.write(thing(1))

    assert await outcomes(db, claiming("a", 1), thing(2)) == [ConstraintViolation, None]
    await db.write(claiming("a", 3))

    assert await ids(db) == [1, 2, 3]


async def test_a_claim_that_another_transaction_is_writing_ends_the_wait_not_the_others(
    db: Database,
) -> None:
    if db.dialect == "sqlite":
        # One transaction writes at a time, so there is never one in the middle of its work.
        async with db.transaction() as tx:
            await tx.insert("claims", {"owner": "me", "key": "a"})
            waiting = asyncio.create_task(outcomes(db, claiming("a", 1), thing(2)))
        assert await waiting == [UniqueViolation, None]
    else:
        async with db.transaction() as tx:
            await tx.insert("claims", {"owner": "me", "key": "a"})
            found = await outcomes(db, claiming("a", 1), thing(2))
        assert found == [LockTimeout, None]
    assert await ids(db) == [2]


async def test_what_follows_a_commit_is_called_after_it_and_only_then(db: Database) -> None:
    called: list[int] = []
    units = [thing(1), thing(1), thing(2)]
    for number, unit in enumerate(units):
        unit.on_commit(lambda number=number: called.append(number))  # type: ignore[misc] # a default

    assert await outcomes(db, *units) == [None, ConstraintViolation, None]
    assert called == [0, 2]


async def test_a_caller_that_is_cancelled_harms_no_other(db: Database) -> None:
    tasks = [asyncio.create_task(db.write(thing(number))) for number in range(64)]
    # At every stage: before its unit is in a batch, and while the batch is being committed.
    for number, task in enumerate(tasks):
        if number % 2:
            task.cancel()
        if number % 8 == 0:
            await asyncio.sleep(0)
    ended = await asyncio.gather(*tasks, return_exceptions=True)

    kept = [number for number, outcome in enumerate(ended) if outcome is None]
    assert set(range(0, 64, 2)) <= set(kept)
    assert set(kept) <= set(await ids(db))
    await db.write(thing(1000))


async def test_a_unit_whose_caller_is_gone_before_the_batch_begins_is_left_out(
    db: Database,
) -> None:
    task = asyncio.create_task(db.write(thing(1)))
    await asyncio.sleep(0)
    task.cancel()
    await db.write(thing(2))

    assert await ids(db) == [2]


async def test_closing_waits_for_what_was_handed_over(backend: Backend) -> None:
    url = await backend.empty()
    db = Database(url)
    await db.connect()
    async with db.transaction() as tx:
        await tx.execute(TABLES[0])
    tasks = [asyncio.create_task(db.write(thing(number))) for number in range(50)]
    await asyncio.sleep(0)
    await db.disconnect()
    await asyncio.gather(*tasks)
    await db.connect()

    assert await ids(db) == list(range(50))
    await db.disconnect()
    await backend.give_back(url)


async def test_a_database_that_is_closed_is_unavailable(db: Database) -> None:
    await db.disconnect()

    with pytest.raises(DatabaseUnavailable):
        await db.write(thing(1))


async def test_a_unit_can_join_a_transaction_and_its_fate(db: Database) -> None:
    called: list[str] = []
    kept, lost = thing(1), thing(2)
    kept.on_commit(lambda: called.append("kept"))
    lost.on_commit(lambda: called.append("lost"))
    async with db.transaction() as tx:
        await tx.write(kept)
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as tx:
            await tx.write(lost)
            raise ZeroDivisionError

    assert await ids(db) == [1]
    assert called == ["kept"]


async def test_it_closes_where_all_who_waited_were_cancelled(db: Database) -> None:
    waiting = [asyncio.ensure_future(db.write(thing(number))) for number in range(3)]
    await asyncio.sleep(0)
    for each in waiting:
        each.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await db._writer.close()

    assert await ids(db) == []


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_a_unit_that_was_undone_for_a_migration_is_written_after_it(
    db: Database, backend: Backend
) -> None:
    """The migration locks two tables in the other order, and keeps them for a while."""
    unit = thing(1)
    unit.insert("pages", {"number": 1, "text": "one"})

    async def waits() -> bool:
        # In a transaction each time: one of its own has one picture of all others.
        async with db.read() as looking:
            found = await looking.fetch_val(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock'"
            )
        return bool(found)

    async with db.transaction() as tx:
        await tx.execute("LOCK TABLE pages IN ACCESS EXCLUSIVE MODE")
        writing = asyncio.create_task(db.write(unit))
        await until(waits)
        # The one who has waited longer finds the deadlock, and is ended.
        await asyncio.sleep(0.3)
        await tx.execute("LOCK TABLE things IN ACCESS EXCLUSIVE MODE")
        await until(waits)
    await writing

    assert await ids(db) == [1]
