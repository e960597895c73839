"""A statement that fails in a transaction whose block goes on all the same."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from msgsvc_core.db import Database, RolledBack, WriteBatch
from msgsvc_core.db.postgres_batches import PostgresBatches
from tests.contracts.things import add, names
from tests.expectations import failing

on_postgresql = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)


@on_postgresql
async def test_a_commit_that_the_server_answers_with_rollback_is_an_error(db: Database) -> None:
    called: list[str] = []
    async with failing(RolledBack, match="ROLLBACK"), db.transaction() as tx:
        await add(tx, 1)
        tx.on_commit(lambda: called.append("committed"))
        with suppress(asyncpg.UniqueViolationError):
            await add(tx, 1)
    written = await names(db)
    async with db.transaction() as tx, db.transaction() as other:
        await add(tx, 2)
        await add(other, 3)

    assert (written, called) == ([], [])
    assert await names(db) == ["thing", "thing"]


@on_postgresql
async def test_a_batch_that_the_server_answers_with_rollback_is_an_error(db: Database) -> None:
    async def write(connection: Any, _units: Sequence[WriteBatch]) -> list[Exception | None]:
        with suppress(asyncpg.UniqueViolationError):
            await connection.execute("INSERT INTO things VALUES (1, 'a', 1), (1, 'b', 2)")
        return [None]

    batches = db._batches
    assert isinstance(batches, PostgresBatches)
    async with failing(RolledBack), db._writing(db.write_deadline()) as connection:
        await batches._in_transaction(connection, write, [WriteBatch()])

    assert await names(db) == []


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("few", [False, True])
async def test_a_transaction_that_sqlite_gave_up_by_itself_is_an_error_at_its_commit(
    db: Database, few: bool
) -> None:
    called: list[str] = []
    async with (
        failing(sqlite3.OperationalError, match="no transaction"),
        db.transaction(inline=few) as tx,
    ):
        await add(tx, 1)
        tx.on_commit(lambda: called.append("committed"))
        with suppress(sqlite3.IntegrityError):
            # As it does by itself when the disk is full.
            await tx.execute("INSERT OR ROLLBACK INTO things VALUES (1, 'again', 1)")

    assert (await names(db), called) == ([], [])
