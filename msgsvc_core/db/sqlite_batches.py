"""Commits write batches on SQLite, many in one transaction.

Rows are written on the event loop's thread, some microseconds each into memory, and committed on another
thread, because only the commit waits for the disk. Doing every step on a thread would reacquire the GIL
from a busy loop each time, which doubled the time of a batch. What the loop cannot write immediately,
because another process writes or a batch fails, goes to that thread as a whole.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

from msgsvc_core.db.errors import ConstraintViolation, is_lost, is_refusal, named_errors
from msgsvc_core.db.in_place import InPlaceWriter
from msgsvc_core.db.rows import flat, parts, values_insert
from msgsvc_core.db.sqlite import retry_while_locked
from msgsvc_core.db.write_batch import WriteBatch, by_shape, claims_by_kind, without_claim
from msgsvc_core.db.writer import Outcome

#: Exceptions of a statement or its values, e.g. integers beyond 64 bits and unpaired surrogates.
FAULTS = (sqlite3.Error, OverflowError, ValueError)

#: Maximum units written on the event loop's thread, which takes a millisecond or two; more are written on the
#: other thread.
IN_PLACE_UNITS = 128

#: Maximum rows of these units: one of `POST /v1/send/batch` has a thousand.
IN_PLACE_ROWS = 512


class SQLiteBatches:
    """`alone` is the write lock of this process: waiting in SQLite's busy handler instead had a tenth of the
    throughput.
    """

    max_concurrent = 1

    def __init__(
        self,
        open_connection: Callable[[], sqlite3.Connection],
        alone: Callable[[float], AbstractAsyncContextManager[Any]],
        in_place: Callable[[], InPlaceWriter],
    ) -> None:
        self._open_connection = open_connection
        self._alone = alone
        self._in_place = in_place
        #: Used on the other thread.
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Opens the connection. Raises `DatabaseUnavailable`."""
        with named_errors():
            self._connection = await self._in_place().in_thread(self._open_connection)

    async def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            await self._in_place().in_thread(self._connection.close)
            self._connection = None

    async def commit(self, units: Sequence[WriteBatch], until_s: float) -> Sequence[Outcome]:
        async with self._alone(until_s):
            return await retry_while_locked(partial(self._try_to_commit, units), until_s)

    async def _try_to_commit(self, units: Sequence[WriteBatch]) -> Sequence[Outcome]:
        in_place = self._in_place()
        outcomes = _begin(in_place, units) if _is_small(units) else None
        if outcomes is None:
            return await in_place.in_thread(self._commit, units)
        await in_place.in_thread(_end, in_place.connection)
        return outcomes

    def _commit(self, units: Sequence[WriteBatch]) -> list[Outcome]:
        assert self._connection is not None, "the batches are open"
        return commit_units(self._connection, units)


def commit_units(connection: sqlite3.Connection, units: Sequence[WriteBatch]) -> list[Outcome]:
    """Commits all units together, or, if one of them fails, each in a separate savepoint."""
    with named_errors():
        try:
            return _in_transaction(connection, _write_together, units)
        except FAULTS as error:
            if is_lost(error):
                raise
        return _in_transaction(connection, _write_one_by_one, units)


def _begin(in_place: InPlaceWriter, units: Sequence[WriteBatch]) -> list[Outcome] | None:
    """The outcomes of the units once they are committed; None if they could not be written."""
    if not in_place.begin():
        return None
    try:
        return _write_together(in_place.connection, units)
    except FAULTS:
        # The other thread repeats it, and assigns the error to its unit.
        _roll_back(in_place.connection)
        return None
    except BaseException:
        _roll_back(in_place.connection)
        raise


def _end(connection: sqlite3.Connection) -> None:
    with named_errors():
        try:
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise


def _is_small(units: Sequence[WriteBatch]) -> bool:
    rows = sum(len(unit.rows) for unit in units)
    return len(units) <= IN_PLACE_UNITS and rows <= IN_PLACE_ROWS


def _in_transaction(
    connection: sqlite3.Connection,
    write: Callable[[sqlite3.Connection, Sequence[WriteBatch]], list[Outcome]],
    units: Sequence[WriteBatch],
) -> list[Outcome]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = write(connection, units)
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise
    return outcomes


def _roll_back(connection: sqlite3.Connection) -> None:
    # After some errors, such as a full disk, SQLite has rolled back already.
    with suppress(sqlite3.OperationalError):
        connection.execute("ROLLBACK")


def _write_together(connection: sqlite3.Connection, units: Sequence[WriteBatch]) -> list[Outcome]:
    outcomes: list[Outcome] = without_claim(units, _claimed(connection, units))
    written = [unit for unit, outcome in zip(units, outcomes, strict=True) if outcome is None]
    for shape, rows in by_shape(written).items():
        for part in parts(rows):
            connection.execute(values_insert(shape, len(part)), flat(part))
    return outcomes


def _claimed(connection: sqlite3.Connection, units: Sequence[WriteBatch]) -> set[int]:
    """The units, by `id`, whose claimed row was new."""
    won: set[int] = set()
    for (shape, key), units_by_key in claims_by_kind(units).items():
        claims = [unit.required.values for unit in units_by_key.values() if unit.required]
        for part in parts(claims):
            insert = values_insert(shape, len(part))
            statement = f"{insert} ON CONFLICT DO NOTHING RETURNING {', '.join(key)}"
            for row in connection.execute(statement, flat(part)):
                won.add(id(units_by_key[tuple(row)]))
    return won


def _write_one_by_one(connection: sqlite3.Connection, units: Sequence[WriteBatch]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for unit in units:
        connection.execute("SAVEPOINT unit")
        try:
            outcomes += _write_together(connection, [unit])
        except FAULTS as error:
            if is_lost(error):
                raise
            connection.execute("ROLLBACK TO SAVEPOINT unit")
            outcomes.append(ConstraintViolation(str(error)) if is_refusal(error) else error)
        connection.execute("RELEASE SAVEPOINT unit")
    return outcomes
