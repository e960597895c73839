"""Transactions and reads on SQLite and PostgreSQL, with one interface.

`databases` provides the pools and drivers. Its per-task connections, query builder and transactions are not
used, for reasons in docs/decisions/0002-databases.md.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import structlog

from msgsvc_core.db.errors import DatabaseUnavailable, Deadlock, NotOpen, named_errors
from msgsvc_core.db.in_place import InPlaceWriter
from msgsvc_core.db.notifications import Callback, Notifications
from msgsvc_core.db.postgres_inserts import UnnestInserts
from msgsvc_core.db.sql import Dialect
from msgsvc_core.db.sqlite import (
    READERS,
    WRITE_WAIT_S,
    SQLiteBackend,
    SQLiteConnection,
    retry_while_locked,
)
from msgsvc_core.db.sqlite_batches import SQLiteBatches
from msgsvc_core.db.tx import OneStatement, Tx, begin, commit, rollback, shielded
from msgsvc_core.db.write_batch import WriteBatch
from msgsvc_core.db.writer import Batches, GroupWriter
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.tracing import child_span

if TYPE_CHECKING:
    from databases.interfaces import ConnectionBackend

T = TypeVar("T")

#: Seconds for which `disconnect` waits for connections in use.
CLOSING_S = 5.0

#: Characters of a trial write: more than fits into the free space of the database's last page.
TRIAL_CHARACTERS = 32 * 1024

log = structlog.get_logger(__name__)


#: Takes the write lock until the loop time that it is given.
TakeWriteLock = Callable[[float], AbstractAsyncContextManager[Any]]


class SQLiteInMemory(Protocol):
    """A SQLite database without a file, see `Database`. It outlives the connections."""

    #: Whether everything runs on the event loop's thread, `inline` or not.
    always_inline: bool

    def batches(self, alone: TakeWriteLock) -> Batches: ...


class NotificationListener(Protocol):
    """Receives notifications of other processes between `start` and `stop`."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(slots=True)
class PoolUsage:
    """Connections in use, callers waiting for one, and the maximum number of connections."""

    size: int
    in_use: int = 0
    waiting: int = 0


class Database:
    """One database, by URL: `sqlite:///path/to/file.db` or `postgresql://user:password@host/name`.

    `session` names the connections in PostgreSQL's `pg_stat_activity`; a copy of the database refuses to
    start while there are any that begin with `msgsvc`. `direct_url` is the address of PostgreSQL itself if a
    connection pooler answers at `url`; if both are the same, the pooler keeps a connection for each session,
    and nothing has to be done without one. `in_memory` replaces the file of a SQLite URL, for
    tests: see `msgsvc_devkit.memory`.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        synchronous: str = "FULL",
        session: str = "msgsvc",
        direct_url: str | None = None,
        in_memory: SQLiteInMemory | None = None,
    ) -> None:
        self.url = url
        self.is_in_memory = in_memory is not None
        #: The name of its sessions on PostgreSQL.
        self.session_name = session
        self._direct_url = direct_url
        self.dialect: Dialect = "sqlite" if url.startswith("sqlite") else "postgresql"
        self._in_traces = {"db.system.name": self.dialect}
        self._inserts = UnnestInserts()
        self._notices = Notifications()
        self._listener: NotificationListener | None = None
        self._backend: Any
        self._batches: Batches
        if in_memory is not None:
            self._backend = in_memory
            self._batches = in_memory.batches(self._writing)
            self.usage = PoolUsage(size=1 + READERS)
        elif self.dialect == "sqlite":
            self._backend = SQLiteBackend(sqlite_path(url), synchronous)
            self._batches = SQLiteBatches(
                self._backend.open_for_batches,
                self._writing,
                lambda: self._backend.in_place_writer,
            )
            self.usage = PoolUsage(size=1 + READERS)
        else:
            # With SQLAlchemy and asyncpg they take 7 MiB.
            from msgsvc_core.db.postgres_batches import PostgresBatches  # noqa: PLC0415 - not on SQLite
            from msgsvc_core.db.postgres_notices import PostgresListener  # noqa: PLC0415 - not on SQLite
            from msgsvc_core.db.postgres_pool import PostgresPool  # noqa: PLC0415 - not on SQLite

            self._backend = PostgresPool(
                url, max_size=pool_size, session=session, has_sessions=url == direct_url
            )
            self.usage = PoolUsage(size=pool_size)
            self._batches = PostgresBatches(self._writing, self._inserts)
            self._listener = PostgresListener(direct_url or url, self._notices, session=session)
        self._writer = GroupWriter(self._batches)
        self._opened = AsyncExitStack()
        self._connected = False
        #: Seconds for which a writer waits for other writers on SQLite, in this process and outside.
        self.write_wait_s = WRITE_WAIT_S
        #: Transactions and units that could not be written since the start.
        self.failed_writes = 0
        #: Reason of the latest failure, until a unit is written; None if writes succeed.
        self.write_failure: str | None = None
        #: Set while no connection is in use or waited for.
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_pooled(self) -> bool:
        """Whether a connection pooler answers that keeps no sessions; known after `connect`."""
        return self.dialect == "postgresql" and self._backend.is_pooled

    @property
    def has_sessions(self) -> bool:
        """Whether `session` works, and notifications of other processes arrive."""
        return self._direct_url is not None or not self.is_pooled

    async def connect(self) -> None:
        """Opens the connections; raises `DatabaseUnavailable` with the reason."""
        async with AsyncExitStack() as undo:
            with named_errors():
                await self._backend.connect()
            undo.push_async_callback(self._backend.disconnect)
            undo.push_async_callback(self._batches.close)
            await self._batches.open()
            undo.push_async_callback(self._writer.close)
            if self._listener is not None:
                undo.push_async_callback(self._listener.stop)
                self._start_listener(self._listener, for_presence=self.is_pooled)
            self._opened = undo.pop_all()
        self._connected = True

    async def disconnect(self) -> None:
        """Makes the database unavailable, and closes the connections once they are released, or after
        `CLOSING_S`."""
        self._connected = False
        opened, self._opened = self._opened, AsyncExitStack()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                await self._idle.wait()
        await opened.aclose()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Tx]:
        """A connection for queries, each of which sees the latest commits."""
        self._check_connected()
        connection: ConnectionBackend | SQLiteConnection[Any]
        if self.dialect == "sqlite":
            connection = self._backend.reading_connection()
        else:
            connection = self._backend.connection()
        async with self._acquired(connection):
            yield Tx(connection.raw_connection, self.dialect, self._inserts, self._notices)

    async def read_inline(self, query: Callable[[Tx], Awaitable[T]]) -> T:
        """Result of `query`, called with a connection as of `read`. For a few hundred rows by an index: on
        SQLite it runs without a thread hop. `query` may be called twice."""
        if self.dialect == "sqlite":
            self._check_connected()
            with suppress(DatabaseUnavailable):
                return await query(
                    Tx(self._backend.in_place_reader, self.dialect, self._inserts, self._notices)
                )
        # Also if the file was locked, e.g. by a process that recovers it after a crash; `read` waits.
        async with self.read() as tx:
            return await query(tx)

    @asynccontextmanager
    async def transaction(
        self,
        *,
        inline: bool = False,
        durable: bool = True,
        background: bool = False,
        one_statement: bool = False,
        until_s: float | None = None,
    ) -> AsyncIterator[Tx]:
        """A transaction that commits at the end of the block and rolls back if it raises.

        `inline` is for statements that touch at most a few hundred rows by an index: on SQLite they run
        without a thread hop.

        `durable=False` returns from the commit before it is on disk, which is by far the slowest part. Do
        nothing externally visible that depends on it before a later durable commit, which makes this one
        durable too.

        On SQLite, which has a single writer, the transaction waits for others until the loop time
        `until_s`, by default `write_deadline`; then `DatabaseUnavailable` is raised. `background` is for
        work that nobody waits for: others go first, but not all of them.

        `one_statement` is for a block that executes at most one: PostgreSQL commits that by itself, in one
        round trip instead of three. The block must not raise after it.

        A cancelled caller still gets its rollback: otherwise `databases` would leak the connection and
        exhaust its pool.
        """
        self._check_connected()
        until_s = self.write_deadline() if until_s is None else until_s
        connection = self._writing_connection(until_s, background=background)
        with child_span("transaction", "client", self._in_traces), self._recording_failures():
            async with self._acquired(connection):
                tx = Tx(connection.raw_connection, self.dialect, self._inserts, self._notices)
                try:
                    in_place = self._in_place_writer(inline=inline)
                    if one_statement and self.dialect == "postgresql":
                        only = OneStatement(connection.raw_connection)
                        tx = Tx(only, self.dialect, self._inserts, self._notices)
                    elif in_place and in_place.begin(durable=durable):
                        tx = Tx(in_place, self.dialect, self._inserts, self._notices, begun=True)
                    elif self.dialect == "sqlite":
                        await retry_while_locked(
                            lambda: shielded(begin(tx, durable=durable)), until_s
                        )
                    else:
                        # Not shielded, for which a busy loop takes three turns more: if this is cancelled,
                        # the rollback ends whatever has begun.
                        await begin(tx, durable=durable)
                    yield tx
                except BaseException:
                    await shielded(rollback(tx))
                    raise
                if tx.has_begun:
                    await shielded(commit(tx))
                else:
                    tx.finish()

    async def write(self, unit: WriteBatch, *, until_s: float | None = None) -> None:
        """Commits a batch together with others that arrive at the same time; returns after the commit.

        Raises `UniqueViolation` if a required row exists, `ConstraintViolation` for another constraint,
        `LockTimeout` if the required row waits for another transaction, `DatabaseUnavailable`. `until_s` is
        that of `transaction`. See `GroupWriter`.
        """
        self._check_connected()
        with child_span("group commit", "client", self._in_traces), self._recording_failures():
            await self._writer.write(unit, self.write_deadline() if until_s is None else until_s)
        self.write_failure = None

    def write_deadline(self) -> float:
        """The loop time until which a transaction started now waits for others."""
        return asyncio.get_running_loop().time() + self.write_wait_s

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        """A connection of asyncpg beside the pool, without timeouts, for work on PostgreSQL's schema:
        statements may be long, and some run outside of transactions only. Raises `DatabaseUnavailable` if a
        pooler answers and there is no direct URL."""
        assert self.dialect == "postgresql", "SQLite has one writer"
        from msgsvc_core.db.postgres_pool import open_session  # noqa: PLC0415 - not on SQLite

        self._check_connected()
        url, is_direct = self._direct_url or self.url, self._direct_url is not None
        async with open_session(url, self.session_name, has_sessions=is_direct) as raw:
            yield raw

    async def cut_free_pages(self, count: int) -> float:
        """Cuts up to `count` free pages off the SQLite file, in a transaction of its own, behind all who wait
        to write; returns for how many seconds others waited. After a checkpoint the file is shorter."""
        assert self.dialect == "sqlite", "PostgreSQL reuses its pages"
        self._check_connected()
        until_s = self.write_deadline()
        connection = self._writing_connection(until_s, background=True)
        async with self._acquired(connection):
            raw = connection.raw_connection

            async def cut() -> float:
                begun_s = time.monotonic()
                # As a script: of a statement without columns, sqlite3 takes one step, which is one page.
                with named_errors():
                    await raw.executescript(f"PRAGMA incremental_vacuum({count})")
                return time.monotonic() - begun_s

            return await retry_while_locked(lambda: shielded(cut()), until_s)

    async def check_writes(self, within_s: float) -> None:
        """Raises `DatabaseUnavailable` with the reason if nothing can be written.

        On SQLite the write lock is acquired each time, within `within_s` seconds. Only after a failed write a
        row is written, to test the disk, and deleted again.
        """
        self._check_connected()
        has_failed = self.write_failure is not None
        if not has_failed and self.dialect == "postgresql":
            return
        until_s = asyncio.get_running_loop().time() + within_s
        async with self.transaction(inline=True, until_s=until_s) as tx:
            if has_failed:
                # Random, as PostgreSQL would compress it otherwise.
                filler = secrets.token_hex(TRIAL_CHARACTERS // 2)
                trial = {"trial_id": new_id("trial"), "filler": filler}
                await tx.insert("core_write_trials", trial)
                await tx.execute(
                    "DELETE FROM core_write_trials WHERE trial_id = :trial_id",
                    {"trial_id": trial["trial_id"]},
                )
        self.write_failure = None

    @contextmanager
    def _recording_failures(self) -> Iterator[None]:
        """Records that the database could not write; a deadlock is not such a failure."""
        try:
            yield
        except DatabaseUnavailable as error:
            if not isinstance(error, Deadlock):
                self.failed_writes += 1
                self.write_failure = str(error)
            raise

    def listen(self, topic: str, callback: Callback) -> None:
        """Calls `callback` with each text that a transaction notifies on `topic`.

        In this process on both databases; on PostgreSQL in every other process too, milliseconds after the
        commit, over a dedicated connection opened for the first listener. Delivery is a hint: it may come
        twice, and is lost while that connection is down or without `has_sessions`, so poll from time to
        time as well. `callback` must
        not block.
        """
        self._notices.listen(topic, callback)
        if self._connected and self._listener is not None:
            self._start_listener(self._listener)

    def _start_listener(
        self, listener: NotificationListener, *, for_presence: bool = False
    ) -> None:
        """`for_presence`: even if nobody listens. The name of its session tells migrations and copies that
        the process runs; sessions that a pooler shares don't tell."""
        if self.has_sessions and (self._notices or for_presence):
            listener.start()

    def _check_connected(self) -> None:
        if not self._connected:
            raise NotOpen("the database is not open: the service is not started")

    @asynccontextmanager
    async def _writing(self, until_s: float) -> AsyncIterator[Any]:
        """A connection for writing; on SQLite it is exclusive."""
        connection = self._writing_connection(until_s)
        async with self._acquired(connection):
            yield connection.raw_connection

    def _writing_connection(
        self, until_s: float, *, background: bool = False
    ) -> "ConnectionBackend | SQLiteConnection[Any]":
        if self.dialect == "sqlite":
            found: SQLiteConnection[Any] = self._backend.connection(until_s, background=background)
            return found
        pooled: ConnectionBackend = self._backend.connection()
        return pooled

    def _in_place_writer(self, *, inline: bool) -> InPlaceWriter | None:
        """Runs statements without a thread hop; only SQLite has one, while it is open."""
        if self.dialect != "sqlite" or not (inline or self._backend.always_inline):
            return None
        found: InPlaceWriter | None = self._backend.in_place_writer
        return found

    @asynccontextmanager
    async def _acquired(
        self, connection: "ConnectionBackend | SQLiteConnection[Any]"
    ) -> AsyncIterator[None]:
        self.usage.waiting += 1
        self._idle.clear()
        try:
            with named_errors():
                await connection.acquire()
        except BaseException:
            self.usage.waiting -= 1
            self._set_idle()
            raise
        self.usage.waiting -= 1
        self.usage.in_use += 1
        try:
            yield
        finally:
            self.usage.in_use -= 1
            # SQLite's never waits, so nothing can cancel it midway.
            release = _release(connection)
            await (release if self.dialect == "sqlite" else shielded(release))
            self._set_idle()

    def _set_idle(self) -> None:
        if not self.usage.in_use and not self.usage.waiting:
            self._idle.set()


async def _release(connection: "ConnectionBackend | SQLiteConnection[Any]") -> None:
    try:
        with named_errors():
            await connection.release()
    except DatabaseUnavailable as error:
        # The server closed the connection or does not respond, and the pool has dropped it. The caller's
        # work has been committed or has failed already, so this is not an error of theirs.
        log.warning("connection_lost", error=str(error))


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:///` URL; three slashes are a relative path, four an absolute one."""
    return Path(url.removeprefix("sqlite:///"))
