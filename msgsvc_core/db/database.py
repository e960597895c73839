"""Transactions and reads over SQLite and PostgreSQL, with one way of asking.

`databases` gives the pools and drivers. Its per-task connections, query builder and transactions are
not used: docs/decisions/0002-databases.md has what we measured of them.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog
from databases.interfaces import ConnectionBackend

from msgsvc_core.db.errors import DatabaseUnavailable, named_errors
from msgsvc_core.db.postgres_batches import PostgresBatches
from msgsvc_core.db.rows import (
    Shape,
    UnnestInserts,
    Values,
    by_column,
    flat,
    parts,
    shape_of,
    values_insert,
)
from msgsvc_core.db.sql import Dialect, numbered
from msgsvc_core.db.sqlite import READERS, SQLiteBackend
from msgsvc_core.db.sqlite_batches import SQLiteBatches
from msgsvc_core.db.unit import Unit, by_shape, call_all
from msgsvc_core.db.writer import GroupWriter

#: Seconds that `disconnect` waits for those who are at work.
CLOSING_S = 5.0

log = structlog.get_logger(__name__)


class Row(Protocol):
    """A row of an answer, read by column name."""

    def __getitem__(self, column: str) -> Any: ...

    def keys(self) -> Any: ...


@dataclass(slots=True)
class Use:
    """How many connections are at work, how many callers wait for one, how many there may be."""

    size: int
    in_use: int = 0
    waiting: int = 0


class Tx:
    """A transaction, or inside `Database.read` a plain connection.

    Parameters are written `:name` in the SQL and given as a mapping.
    """

    def __init__(self, raw: Any, dialect: Dialect, inserts: UnnestInserts) -> None:
        self._raw = raw
        self._inserts = inserts
        self.dialect = dialect
        self._after_commit: list[Callable[[], None]] = []
        self._begun = False

    async def fetch_all(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a query, or of a statement with RETURNING."""
        with named_errors():
            if self.dialect == "sqlite":
                return list(await self._raw.execute_fetchall(sql, params or {}))
            text, names = numbered(sql)
            return list(await self._raw.fetch(text, *_ordered(names, params)))

    async def fetch_one(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch_all(sql, params)
        return rows[0] if rows else None

    async def fetch_val(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        row = await self.fetch_one(sql, params)
        return None if row is None else row[next(iter(row.keys()))]

    async def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> int:
        """Runs a statement; returns how many rows it inserted, changed or deleted."""
        with named_errors():
            if self.dialect == "sqlite":
                cursor = await self._raw.execute(sql, params or {})
                return max(0, int(cursor.rowcount))
            text, names = numbered(sql)
            status = await self._raw.execute(text, *_ordered(names, params))
            count = status.rpartition(" ")[2]
            return int(count) if count.isdigit() else 0

    async def insert(self, table: str, values: Mapping[str, Any]) -> None:
        """Adds one row."""
        await self.insert_many(table, [values])

    async def insert_many(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows of the same columns in as few statements as the database allows."""
        if rows:
            shape = shape_of(table, rows[0])
            await self._insert(shape, [tuple(row[name] for name in shape[1]) for row in rows])

    async def write(self, unit: Unit) -> None:
        """Adds a unit's rows in this transaction. It may have no claim."""
        assert unit.claim_ is None, "a claim is for Database.write"
        for shape, rows in by_shape([unit]).items():
            await self._insert(shape, rows)
        self._after_commit += unit.after_commit

    async def _insert(self, shape: Shape, rows: Sequence[Values]) -> None:
        with named_errors():
            if self.dialect == "postgresql":
                statement = await self._inserts.get(self._raw, shape)
                await self._raw.execute(statement, *by_column(rows))
                return
            for part in parts(rows):
                await self._raw.execute_fetchall(values_insert(shape, len(part)), flat(part))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """What happens inside is undone if the block raises, the rest of the transaction is not."""
        await self.execute("SAVEPOINT step")
        known = len(self._after_commit)
        try:
            yield
        except BaseException:
            del self._after_commit[known:]
            await _shielded(self._undo_step())
            raise
        await self.execute("RELEASE SAVEPOINT step")

    async def _undo_step(self) -> None:
        await self.execute("ROLLBACK TO SAVEPOINT step")
        # A savepoint outlives the rollback to it, and would hide an outer one of the same name.
        await self.execute("RELEASE SAVEPOINT step")

    async def wait_for_locks(self, timeout_s: float) -> None:
        """Bounds waiting for rows that other transactions hold; beyond it `LockTimeout` is raised.

        SQLite has one writer, so a transaction that has begun waits for nobody.
        """
        if self.dialect == "postgresql":
            await self.execute(f"SET LOCAL lock_timeout = {int(timeout_s * 1000)}")

    async def lock(self, name: str) -> None:
        """Waits until no other transaction holds the lock of that name; it ends with this one.

        For rules over many rows, such as "at most 20 tags": count and insert under one lock. On
        SQLite, where one transaction writes at a time, there is nothing to wait for.
        """
        if self.dialect == "postgresql":
            await self.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))", {"name": name}
            )

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Has `callback` called after a successful commit. It must not raise and not block."""
        self._after_commit.append(callback)

    def _committed(self) -> None:
        call_all(self._after_commit)


class Database:
    """One database, by URL: `sqlite:///path/to/file.db` or `postgresql://user:password@host/name`."""

    def __init__(self, url: str, *, pool_size: int = 10, synchronous: str = "FULL") -> None:
        self.url = url
        self.dialect: Dialect = "sqlite" if url.startswith("sqlite") else "postgresql"
        self._inserts = UnnestInserts()
        self._backend: Any
        self._batches: SQLiteBatches | PostgresBatches
        if self.dialect == "sqlite":
            self._backend = SQLiteBackend(sqlite_path(url), synchronous)
            self._batches = SQLiteBatches(self._backend.open_for_batches, self._writing)
            self.use = Use(size=1 + READERS)
        else:
            # What it brings of SQLAlchemy is 4 MiB.
            from databases.backends.postgres import PostgresBackend  # noqa: PLC0415 - not on SQLite

            self._backend = PostgresBackend(
                url, min_size=1, max_size=pool_size, reset=_leave_session
            )
            self.use = Use(size=pool_size)
            self._batches = PostgresBatches(self._writing, self._inserts)
        self._writer = GroupWriter(self._batches)
        self._opened = AsyncExitStack()
        self._connected = False
        #: Set while nobody has a connection or waits for one.
        self._idle = asyncio.Event()
        self._idle.set()

    async def connect(self) -> None:
        """Opens the connections; raises `DatabaseUnavailable` with the reason."""
        async with AsyncExitStack() as undo:
            with named_errors():
                await self._backend.connect()
            undo.push_async_callback(self._backend.disconnect)
            undo.push_async_callback(self._batches.close)
            await self._batches.open()
            undo.push_async_callback(self._writer.close)
            self._opened = undo.pop_all()
        self._connected = True

    async def disconnect(self) -> None:
        """From now on the database is unavailable; closes the connections when those who have one are
        done with it, or after `CLOSING_S`."""
        self._connected = False
        opened, self._opened = self._opened, AsyncExitStack()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                await self._idle.wait()
        await opened.aclose()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Tx]:
        """A connection for queries, each of which sees the newest commits."""
        self._check_connected()
        connection: ConnectionBackend
        if self.dialect == "sqlite":
            connection = self._backend.reading_connection()
        else:
            connection = self._backend.connection()
        async with self._acquired(connection):
            yield Tx(connection.raw_connection, self.dialect, self._inserts)

    @asynccontextmanager
    async def read_few(self) -> AsyncIterator[Tx]:
        """Like `read`, for a few rows by an index: SQLite is asked without a hop to a thread.

        It never waits there: `DatabaseUnavailable` when the file is locked for a moment.
        """
        if self.dialect == "postgresql":
            async with self.read() as tx:
                yield tx
            return
        self._check_connected()
        yield Tx(self._backend.in_place, self.dialect, self._inserts)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """A transaction that commits at the end of the block and rolls back if it raises.

        A caller that is cancelled gets its rollback all the same: `databases` lost the connection
        then, and its pool ran empty.
        """
        self._check_connected()
        connection: ConnectionBackend = self._backend.connection()
        async with self._acquired(connection):
            tx = Tx(connection.raw_connection, self.dialect, self._inserts)
            try:
                await _shielded(_begin(tx))
                yield tx
            except BaseException:
                await _shielded(_rollback(tx))
                raise
            await _shielded(_commit(tx))

    async def write(self, unit: Unit) -> None:
        """Commits a unit, together with others that come at the same time; returns after the commit.

        Raises `Taken` if its claim is, `Refused` for another constraint, `LockTimeout` if the claim
        waits for another transaction, `DatabaseUnavailable`. See `GroupWriter`.
        """
        self._check_connected()
        await self._writer.write(unit)

    def _check_connected(self) -> None:
        if not self._connected:
            raise DatabaseUnavailable("the database is not open")

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Any]:
        """A connection to write on; on SQLite nobody else has one meanwhile."""
        connection: ConnectionBackend = self._backend.connection()
        async with self._acquired(connection):
            yield connection.raw_connection

    @asynccontextmanager
    async def _acquired(self, connection: ConnectionBackend) -> AsyncIterator[None]:
        self.use.waiting += 1
        self._idle.clear()
        try:
            with named_errors():
                await connection.acquire()
        except BaseException:
            self.use.waiting -= 1
            self._left()
            raise
        self.use.waiting -= 1
        self.use.in_use += 1
        try:
            yield
        finally:
            self.use.in_use -= 1
            await _shielded(_give_back(connection))
            self._left()

    def _left(self) -> None:
        if not self.use.in_use and not self.use.waiting:
            self._idle.set()


async def _give_back(connection: ConnectionBackend) -> None:
    try:
        with named_errors():
            await connection.release()
    except DatabaseUnavailable as error:
        # The server ended it just now, and the pool has dropped it by itself. What the caller did is
        # done or has failed already: this is no news for him.
        log.warning("connection_lost", error=str(error))


async def _leave_session(_connection: Any) -> None:
    """Spares a round trip at each release: we change no session, and asyncpg itself has ended what
    might be left of a transaction before it calls this."""


async def _begin(tx: Tx) -> None:
    # IMMEDIATE: 95 of 100 deferred transactions that read before they wrote failed with
    # "database is locked".
    await tx.execute("BEGIN IMMEDIATE" if tx.dialect == "sqlite" else "BEGIN")
    tx._begun = True


async def _commit(tx: Tx) -> None:
    """Commits, and does here what follows: a caller that is cancelled meanwhile must not skip it."""
    try:
        await tx.execute("COMMIT")
    except BaseException:
        await _rollback(tx)
        raise
    tx._committed()


async def _rollback(tx: Tx) -> None:
    if not tx._begun:
        return
    try:
        await tx.execute("ROLLBACK")
    except (DatabaseUnavailable, sqlite3.OperationalError) as error:
        # The connection is gone or the database rolled back by itself; there is nothing to undo.
        log.warning("rollback_failed", error=str(error))


async def _shielded(work: Any) -> None:
    """Awaits `work` to its end even if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
    task.result()
    if cancelled:
        raise cancelled


def _ordered(names: tuple[str, ...], params: Mapping[str, Any] | None) -> list[Any]:
    return [params[name] for name in names] if params else []


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:///` URL; three slashes are a relative path, four an absolute one."""
    return Path(url.removeprefix("sqlite:///"))
