"""Commits batches of units on SQLite, each in one hop to a thread and one transaction."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from msgsvc_core.db.errors import Refused, is_lost, is_refusal, named_errors
from msgsvc_core.db.rows import flat, parts, values_insert
from msgsvc_core.db.unit import Unit, by_shape, claims_by_kind, without_claim
from msgsvc_core.db.writer import Outcome

T = TypeVar("T")

#: What a statement or its values can raise, integers beyond 64 bits and halves of letters among them.
FAULTS = (sqlite3.Error, OverflowError, ValueError)


class SQLiteBatches:
    """`open_connection` is called in the thread that then keeps the connection.

    `alone` keeps others of this process from writing meanwhile: waiting in SQLite's busy handler
    instead had a tenth of the throughput.
    """

    at_once = 1

    def __init__(
        self,
        open_connection: Callable[[], sqlite3.Connection],
        alone: Callable[[], AbstractAsyncContextManager[Any]],
    ) -> None:
        self._open_connection = open_connection
        self._alone = alone
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Opens the connection. Raises `DatabaseUnavailable`."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="group-commit")
        with named_errors():
            self._connection = await self._in_thread(self._open_connection)

    async def close(self) -> None:
        """Closes the connection and ends the thread."""
        if self._connection is not None:
            await self._in_thread(self._connection.close)
            self._connection = None
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None

    async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        async with self._alone():
            return await self._in_thread(self._commit, units)

    def _in_thread(self, work: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _commit(self, units: Sequence[Unit]) -> list[Outcome]:
        """Everything in one go, or, if a unit is at fault, each in a savepoint of its own."""
        assert self._connection is not None, "the batches are open"
        with named_errors():
            try:
                return _in_transaction(self._connection, _write_together, units)
            except FAULTS as error:
                if is_lost(error):
                    raise
            return _in_transaction(self._connection, _write_one_by_one, units)


def _in_transaction(
    connection: sqlite3.Connection,
    write: Callable[[sqlite3.Connection, Sequence[Unit]], list[Outcome]],
    units: Sequence[Unit],
) -> list[Outcome]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = write(connection, units)
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, a full disk for one, SQLite has rolled back by itself.
        with suppress(sqlite3.OperationalError):
            connection.execute("ROLLBACK")
        raise
    return outcomes


def _write_together(connection: sqlite3.Connection, units: Sequence[Unit]) -> list[Outcome]:
    outcomes: list[Outcome] = without_claim(units, _claimed(connection, units))
    written = [unit for unit, outcome in zip(units, outcomes, strict=True) if outcome is None]
    for shape, rows in by_shape(written).items():
        for part in parts(rows):
            connection.execute(values_insert(shape, len(part)), flat(part))
    return outcomes


def _claimed(connection: sqlite3.Connection, units: Sequence[Unit]) -> set[int]:
    """Which units, by `id`, got the row that they claim."""
    won: set[int] = set()
    for (shape, key), units_by_key in claims_by_kind(units).items():
        claims = [unit.claim_.values for unit in units_by_key.values() if unit.claim_]
        for part in parts(claims):
            insert = values_insert(shape, len(part))
            statement = f"{insert} ON CONFLICT DO NOTHING RETURNING {', '.join(key)}"
            for row in connection.execute(statement, flat(part)):
                won.add(id(units_by_key[tuple(row)]))
    return won


def _write_one_by_one(connection: sqlite3.Connection, units: Sequence[Unit]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for unit in units:
        connection.execute("SAVEPOINT unit")
        try:
            outcomes += _write_together(connection, [unit])
        except FAULTS as error:
            if is_lost(error):
                raise
            connection.execute("ROLLBACK TO SAVEPOINT unit")
            outcomes.append(Refused(str(error)) if is_refusal(error) else error)
        connection.execute("RELEASE SAVEPOINT unit")
    return outcomes
