"""Statements that a transaction defers, and transactions of one, over SQLite and PostgreSQL."""

import pytest

from msgsvc_core.db import Database, Tx
from tests.contracts.things import add, names
from tests.expectations import failing

pytestmark = pytest.mark.both_databases


async def insert(tx: Tx, number: int, name: str = "new") -> None:
    await tx.insert_deferred("things", [{"id": number, "name": name}])


async def rename(tx: Tx, number: int, name: str) -> None:
    await tx.execute_deferred(
        "UPDATE things SET name = :name WHERE id = :number",
        {"name": name, "number": number},
        table="things",
    )


async def test_what_was_deferred_is_committed(db: Database) -> None:
    async with db.transaction() as tx:
        await insert(tx, 1)

    assert await names(db) == ["new"]


async def test_what_was_deferred_is_rolled_back(db: Database) -> None:
    async with failing(ZeroDivisionError), db.transaction() as tx:
        await insert(tx, 1)
        raise ZeroDivisionError

    assert await names(db) == []


async def test_the_next_query_sees_what_was_deferred(db: Database) -> None:
    async with db.transaction() as tx:
        await insert(tx, 1)
        seen = await tx.fetch_val("SELECT name FROM things WHERE id = 1")

    assert seen == "new"


async def test_the_next_insert_comes_after_what_was_deferred(db: Database) -> None:
    async with db.transaction() as tx:
        await insert(tx, 1, "first")
        async with failing(Exception, match=r"(?i)unique"), tx.savepoint():
            await add(tx, 1, "second")

    assert await names(db) == ["first"]


async def test_each_change_of_one_row_is_made(db: Database) -> None:
    async with db.transaction() as tx:
        await insert(tx, 1)
        await rename(tx, 1, "second")
        await rename(tx, 1, "third")

    assert await names(db) == ["third"]


async def test_statements_of_several_tables_are_executed_with_their_own_values(
    db: Database,
) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "first")
        await rename(tx, 1, "second")
        await tx.insert_deferred("parts", [{"id": 8, "thing_id": 1}, {"id": 9, "thing_id": 1}])
    async with db.transaction() as tx:
        await tx.execute_deferred("DELETE FROM parts WHERE id = :id", {"id": 8}, table="parts")
        await insert(tx, 2, "third")
    async with db.read() as tx:
        parts = await tx.fetch_all("SELECT id FROM parts")

    assert [row["id"] for row in parts] == [9]
    assert await names(db) == ["second", "third"]


async def test_an_error_of_what_was_deferred_in_a_savepoint_spares_the_transaction(
    db: Database,
) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "kept")
        async with failing(Exception, match=r"(?i)unique"), tx.savepoint():
            await insert(tx, 1, "again")
        await insert(tx, 2, "after")

    assert await names(db) == ["kept", "after"]


async def test_what_a_failed_savepoint_deferred_is_not_executed(db: Database) -> None:
    async with db.transaction() as tx:
        async with failing(ZeroDivisionError), tx.savepoint():
            await insert(tx, 1)
            raise ZeroDivisionError
        await add(tx, 2, "after")

    assert await names(db) == ["after"]


async def test_an_error_of_what_was_deferred_rolls_everything_back(db: Database) -> None:
    async with failing(Exception, match=r"(?i)unique"), db.transaction() as tx:
        await add(tx, 1)
        await insert(tx, 1)

    assert await names(db) == []


async def test_one_statement_is_committed_with_its_callbacks(db: Database) -> None:
    called: list[int] = []
    async with db.transaction(one_statement=True) as tx:
        tx.on_commit(lambda: called.append(1))
        await tx.execute("INSERT INTO things (id, name) VALUES (:id, 'one')", {"id": 1})

    assert (await names(db), called) == (["one"], [1])


async def test_one_statement_that_fails_has_no_callbacks(db: Database) -> None:
    called: list[int] = []
    async with failing(Exception, match=r"(?i)nowhere"), db.transaction(one_statement=True) as tx:
        tx.on_commit(lambda: called.append(1))
        await tx.fetch_all("DELETE FROM nowhere RETURNING id")
    async with db.transaction() as tx:
        await add(tx, 1)

    assert (await names(db), called) == (["thing"], [])


async def test_a_second_statement_is_refused_where_it_would_be_a_second_transaction(
    db: Database,
) -> None:
    if db.dialect == "sqlite":
        pytest.skip("there it is a transaction like others")
    async with failing(AssertionError, match="second"), db.transaction(one_statement=True) as tx:
        await tx.fetch_all("SELECT 1 AS one")
        await tx.fetch_all("SELECT 1 AS one")

    assert await names(db) == []
