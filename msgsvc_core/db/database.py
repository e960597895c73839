"""Transactions and reads over SQLite and PostgreSQL, with one way of asking.

`databases` gives the pools and drivers. Its per-task connections, query builder and transactions are
not used: docs/decisions/0002-databases.md has what we measured of them.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import structlog
from databases.backends.postgres import PostgresBackend
from databases.interfaces import ConnectionBackend

from msgsvc_core.db.sql import Dialect, insert_statement, numbered
from msgsvc_core.db.sqlite import SQLiteBackend

#: Rows of one INSERT. PostgreSQL takes 32,767 parameters in a statement.
ROWS_PER_INSERT = 500

log = structlog.get_logger(__name__)


class DatabaseUnavailable(Exception):
    """The database can't be reached, or can't write. Nothing was committed by this transaction."""


class LockTimeout(Exception):
    """Another transaction held a row for longer than `Tx.wait_for_locks` allowed."""


class Row(Protocol):
    """A row of an answer, read by column name."""

    def __getitem__(self, column: str) -> Any: ...

    def keys(self) -> Any: ...


class Tx:
    """A transaction, or inside `Database.read` a plain connection.

    Parameters are written `:name` in the SQL and given as a mapping.
    """

    def __init__(self, raw: Any, dialect: Dialect) -> None:
        self._raw = raw
        self.dialect = dialect
        self._after_commit: list[Callable[[], None]] = []
        self._begun = False

    async def fetch_all(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a query, or of a statement with RETURNING."""
        with _unavailable():
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
        with _unavailable():
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
        for start in range(0, len(rows), ROWS_PER_INSERT):
            statement, params = insert_statement(table, rows[start : start + ROWS_PER_INSERT])
            await self.execute(statement, params)

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
        for callback in self._after_commit:
            callback()


class Database:
    """One database, by URL: `sqlite:///path/to/file.db` or `postgresql://user:password@host/name`."""

    def __init__(self, url: str, *, pool_size: int = 10, synchronous: str = "FULL") -> None:
        self.url = url
        self.dialect: Dialect = "sqlite" if url.startswith("sqlite") else "postgresql"
        self._connected = False
        self._backend: Any
        if self.dialect == "sqlite":
            self._backend = SQLiteBackend(sqlite_path(url), synchronous)
        else:
            self._backend = PostgresBackend(
                url, min_size=1, max_size=pool_size, reset=_leave_session
            )

    async def connect(self) -> None:
        """Opens the connections; raises `DatabaseUnavailable` with the reason."""
        with _unavailable():
            await self._backend.connect()
        self._connected = True

    async def disconnect(self) -> None:
        """Closes the connections; from now on the database is unavailable."""
        if self._connected:
            self._connected = False
            await self._backend.disconnect()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Tx]:
        """A connection for queries, each of which sees the newest commits."""
        connection: ConnectionBackend
        if self.dialect == "sqlite":
            connection = self._backend.reading_connection()
        else:
            connection = self._backend.connection()
        async with self._acquired(connection):
            yield Tx(connection.raw_connection, self.dialect)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """A transaction that commits at the end of the block and rolls back if it raises.

        A caller that is cancelled gets its rollback all the same: `databases` lost the connection
        then, and its pool ran empty.
        """
        connection: ConnectionBackend = self._backend.connection()
        async with self._acquired(connection):
            tx = Tx(connection.raw_connection, self.dialect)
            try:
                await _shielded(_begin(tx))
                yield tx
            except BaseException:
                await _shielded(_rollback(tx))
                raise
            await _shielded(_commit(tx))

    @asynccontextmanager
    async def _acquired(self, connection: ConnectionBackend) -> AsyncIterator[None]:
        if not self._connected:
            raise DatabaseUnavailable("the database is not open")
        with _unavailable():
            await connection.acquire()
        try:
            yield
        finally:
            await _shielded(connection.release())


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


_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What a quarter of the connections said whose server process was ended in mid-transaction.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)

#: Primary result codes of SQLite that mean "not now" or "not here"; the others are our mistakes.
_SQLITE_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
    }
)


@contextmanager
def _unavailable() -> Iterator[None]:
    """Gives the drivers' many ways of saying "not now" one name."""
    try:
        yield
    except asyncpg.LockNotAvailableError as error:
        raise LockTimeout(str(error)) from error
    except _LOST as error:
        # A value of the wrong type is an `InterfaceError` to asyncpg, and a mistake of ours.
        if isinstance(error, ValueError):
            raise
        raise DatabaseUnavailable(str(error) or type(error).__name__) from error
    except sqlite3.DatabaseError as error:
        # The low byte of an extended code, e.g. SQLITE_IOERR_WRITE, is the primary one.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_UNAVAILABLE:
            raise DatabaseUnavailable(str(error)) from error
        raise


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:///` URL; three slashes are a relative path, four an absolute one."""
    return Path(url.removeprefix("sqlite:///"))
