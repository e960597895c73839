"""A transaction, with one interface for SQLite and PostgreSQL."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import structlog

from msgsvc_core.db.errors import DatabaseUnavailable, check_committed, named_errors
from msgsvc_core.db.notifications import CHANNEL, Notifications, encode_notice
from msgsvc_core.db.postgres_inserts import UnnestInserts
from msgsvc_core.db.rows import (
    Shape,
    Values,
    flat,
    parts,
    shape_of,
    values_insert,
    values_of,
)
from msgsvc_core.db.sql import Dialect, Statement, combined, numbered
from msgsvc_core.db.write_batch import WriteBatch, by_shape, call_all

#: Timeout in seconds for a rollback, which is cheap on PostgreSQL. A cancelled caller waits for it.
UNDO_S = 2.0

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Row(Protocol):
    """A row of a result, read by column name."""

    def __getitem__(self, column: str) -> Any: ...

    def __iter__(self) -> Iterator[Any]:
        """The values, in the order of the columns."""
        ...

    def keys(self) -> Any: ...


class Tx:
    """A transaction, or inside `Database.read` a plain connection.

    Parameters are written `:name` in the SQL and given as a mapping.
    """

    def __init__(
        self,
        raw: Any,
        dialect: Dialect,
        inserts: UnnestInserts,
        notices: Notifications,
        *,
        begun: bool = False,
    ) -> None:
        self._raw = raw
        self._inserts = inserts
        self._notices = notices
        self._sent: list[str] = []
        self.dialect = dialect
        self._after_commit: list[Callable[[], None]] = []
        self._begun = begun
        #: Statements that are to be executed before the next one, by table; always empty on SQLite.
        self._deferred: dict[str, Statement] = {}

    async def fetch_all(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a query, or of a statement with RETURNING."""
        with named_errors():
            if self.dialect == "sqlite":
                return list(await self._raw.execute_fetchall(sql, params or {}))
            await self._execute_deferred()
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
            await self._execute_deferred()
            text, names = numbered(sql)
            status = await self._raw.execute(text, *_ordered(names, params))
            count = status.rpartition(" ")[2]
            return int(count) if count.isdigit() else 0

    async def insert(self, table: str, values: Mapping[str, Any]) -> None:
        """Adds one row."""
        await self.insert_many(table, [values])

    async def insert_many(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Inserts rows with the same columns in as few statements as the database allows."""
        if rows:
            shape = shape_of(table, rows[0])
            await self._insert(shape, list(map(values_of(shape), rows)))

    async def execute_deferred(self, sql: str, params: Mapping[str, Any], *, table: str) -> None:
        """Executes a statement that changes `table`, and no other, before the transaction's next statement or
        its commit; errors are raised there.

        On PostgreSQL deferred statements of several tables are one round trip. They all see the rows as they
        were before the first of them. SQLite, which has no round trips, executes them at once.
        """
        if self.dialect == "sqlite":
            await self.execute(sql, params)
            return
        text, names = numbered(sql)
        await self._defer(table, text, _ordered(names, params))

    async def insert_deferred(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Like `insert_many`, but as `execute_deferred` does it."""
        if not rows:
            return
        if self.dialect == "sqlite":
            await self.insert_many(table, rows)
            return
        shape = shape_of(table, rows[0])
        with named_errors():
            statement, values = await self._inserts.get(
                self._raw, {shape: list(map(values_of(shape), rows))}
            )
        await self._defer(table, statement, values)

    async def _defer(self, table: str, text: str, values: Sequence[Any]) -> None:
        assert self._begun, (
            "a deferred statement is executed by the commit, if by no other statement"
        )
        if table in self._deferred:
            # Of two changes of one row in one statement, PostgreSQL ignores the second.
            with named_errors():
                await self._execute_deferred()
        self._deferred[table] = text, values

    async def _execute_deferred(self) -> None:
        if self._deferred:
            deferred, self._deferred = self._deferred, {}
            text, values = combined(list(deferred.values()))
            await self._raw.execute(text, *values)

    async def write(self, unit: WriteBatch) -> None:
        """Inserts the rows of a write batch without a claim in this transaction."""
        assert unit.required is None, "a claim is for Database.write"
        for shape, rows in by_shape([unit]).items():
            await self._insert(shape, rows)
        self._after_commit += unit.after_commit

    async def _insert(self, shape: Shape, rows: Sequence[Values]) -> None:
        with named_errors():
            if self.dialect == "postgresql":
                await self._execute_deferred()
                statement, values = await self._inserts.get(self._raw, {shape: rows})
                await self._raw.execute(statement, *values)
                return
            for part in parts(rows):
                await self._raw.execute_fetchall(values_insert(shape, len(part)), flat(part))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """If the block raises, its statements are rolled back, and the rest of the transaction is not."""
        await self.execute("SAVEPOINT step")
        known, told = len(self._after_commit), len(self._sent)
        try:
            yield
            with named_errors():
                await self._execute_deferred()
        except BaseException:
            self._deferred.clear()
            del self._after_commit[known:], self._sent[told:]
            await shielded(self._undo_step())
            raise
        await self.execute("RELEASE SAVEPOINT step")

    async def _undo_step(self) -> None:
        # A savepoint survives the rollback to it, and would hide an outer one of the same name.
        await self._undo("ROLLBACK TO SAVEPOINT step", "RELEASE SAVEPOINT step")

    async def _undo(self, *statements: str) -> None:
        """Rolls back, on PostgreSQL with a timeout. If that fails the connection is closed, which rolls back
        everything, and its next use raises `DatabaseUnavailable`."""
        if self.dialect == "sqlite":
            for sql in statements:
                await self.execute(sql)
            return
        try:
            with named_errors():
                for sql in statements:
                    await self._raw.execute(sql, timeout=UNDO_S)
        except DatabaseUnavailable as error:
            log.warning("rollback_failed", error=str(error))
            # A lost connection raises once more.
            with suppress(DatabaseUnavailable), named_errors():
                self._raw.terminate()

    async def wait_for_locks(self, timeout_s: float) -> None:
        """Limits waiting for row locks; after `timeout_s`, `LockTimeout` is raised.

        No effect on SQLite: it has a single writer, so an open transaction waits for nobody.
        """
        if self.dialect == "postgresql":
            await self.execute(f"SET LOCAL lock_timeout = {int(timeout_s * 1000)}")

    async def lock(self, name: str) -> None:
        """Takes the advisory lock of that name until the end of the transaction.

        For rules over many rows, such as "at most 20 tags": count and insert under one lock. No effect on
        SQLite, which has a single writer.
        """
        if self.dialect == "postgresql":
            await self.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))", {"name": name}
            )

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Calls `callback` after a successful commit. It must not raise or block."""
        self._after_commit.append(callback)

    def notify(self, topic: str, text: str) -> None:
        """Notifies the listeners of `topic` after the commit: see `Database.listen`."""
        notice = encode_notice(topic, text)
        self._sent.append(notice)
        self.on_commit(partial(self._notices.notify, notice))

    async def _commit(self) -> None:
        if self._sent and self.dialect == "postgresql":
            await self.execute(
                f"SELECT pg_notify('{CHANNEL}', notice) FROM unnest(:told::text[]) AS told (notice)",
                {"told": self._sent},
            )
        if self.dialect == "sqlite":
            await self.execute("COMMIT")
            return
        with named_errors():
            await self._execute_deferred()
            check_committed(await self._raw.execute("COMMIT"))

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to commit, or to roll back."""
        return self._begun

    def finish(self) -> None:
        """Runs the callbacks of the commit."""
        call_all(self._after_commit)


class OneStatement:
    """A connection to PostgreSQL for one statement, which commits by itself."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._is_used = False

    async def fetch(self, text: str, *values: Any) -> list[Any]:
        return list(await self._use().fetch(text, *values))

    async def execute(self, text: str, *values: Any) -> str:
        return str(await self._use().execute(text, *values))

    def _use(self) -> Any:
        assert not self._is_used, "a second statement is a second transaction"
        self._is_used = True
        return self._raw


async def begin(tx: Tx, *, durable: bool = True) -> None:
    if tx.dialect == "sqlite":
        # IMMEDIATE: 95 of 100 deferred transactions that read before they wrote failed with
        # "database is locked".
        await tx.execute("BEGIN IMMEDIATE")
        tx._begun = True
    else:
        # Set first: a BEGIN that timed out may still have started a transaction.
        tx._begun = True
        await tx.execute("BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit = off")


async def commit(tx: Tx) -> None:
    """Commits and runs the callbacks, so that a caller cancelled meanwhile doesn't skip them."""
    try:
        await tx._commit()
    except BaseException:
        await rollback(tx)
        raise
    tx.finish()


async def rollback(tx: Tx) -> None:
    if not tx._begun:
        return
    try:
        await tx._undo("ROLLBACK")
    except (DatabaseUnavailable, sqlite3.OperationalError) as error:
        # The connection is lost or the database rolled back already; there is nothing to undo.
        log.warning("rollback_failed", error=str(error))


async def shielded(work: Awaitable[T]) -> T:
    """Awaits `work` to its end even if the caller is cancelled meanwhile; the cancellation is raised
    afterwards, also where `work` failed: otherwise the canceller would wait for a task that continues after
    an error."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled and not task.cancelled():
        raise cancelled from task.exception()
    return task.result()


def _ordered(names: tuple[str, ...], params: Mapping[str, Any] | None) -> list[Any]:
    return [params[name] for name in names] if params else []
