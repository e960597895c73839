"""SQLite databases in memory, for services of tests: restored from an image, and without threads.

A service on a file opens six connections, each of which parses the schema, and hands most statements to
threads. Here one connection executes everything on the event loop's thread. What a test sees is the same,
except that a transaction sees its own uncommitted rows in `Database.read()` too. Tests about files, locks,
several processes, or two transactions that meet use a file: `@pytest.mark.database_file`.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from msgsvc_core.db import Database, MigrationSource
from msgsvc_core.db.database import TakeWriteLock
from msgsvc_core.db.errors import FileLocked
from msgsvc_core.db.priority_pool import PriorityPool
from msgsvc_core.db.sqlite import WRITE_WAIT_S, SQLiteConnection
from msgsvc_core.db.sqlite_batches import commit_units
from msgsvc_core.db.write_batch import WriteBatch
from msgsvc_core.db.writer import Outcome
from msgsvc_devkit.images import shared_images

#: A database in memory has no path. A program that opens this one as a file fails: there is no such
#: folder.
MEMORY_URL = "sqlite:////only-in-memory/"

#: The transaction in which this task, or the one that started it, is.
_within: ContextVar[object | None] = ContextVar("_within", default=None)


@asynccontextmanager
async def memory_database(sources: Sequence[MigrationSource]) -> AsyncIterator[Database]:
    """A connected database with the tables of these owners, and no rows."""
    rows = MemoryDatabase(await shared_images().of(sources))
    db = Database(MEMORY_URL, in_memory=MemoryBackend(rows))
    await db.connect()
    try:
        yield db
    finally:
        await db.disconnect()
        rows.close()


class MemoryDatabase:
    """The rows of one database. They stay until `close`, however often services connect and disconnect."""

    def __init__(self, image: bytes) -> None:
        # Shared by services, and by the threads in which some tests run theirs.
        self.raw = sqlite3.connect(
            ":memory:", isolation_level=None, cached_statements=512, check_same_thread=False
        )
        self.raw.deserialize(image)
        self.raw.row_factory = sqlite3.Row
        self.raw.execute("PRAGMA foreign_keys = ON")
        self.raw.execute("PRAGMA temp_store = MEMORY")
        self.connection = MemoryConnection(self)
        #: As on a file, one writes at a time.
        self.writer: PriorityPool[MemoryConnection] = PriorityPool()
        self.writer.put(self.connection)
        #: The open transaction, and what is set when it ends.
        self._transaction: object | None = None
        self._ended = asyncio.Event()

    def begin(self) -> None:
        self.raw.execute("BEGIN IMMEDIATE")
        self._transaction = object()
        self._ended.clear()
        _within.set(self._transaction)

    def end(self, sql: str) -> sqlite3.Cursor:
        """Commits or rolls back. A commit that fails leaves the transaction open."""
        cursor = self.raw.execute(sql)
        self._transaction = None
        self._ended.set()
        return cursor

    async def wait_for_commit(self) -> None:
        """Returns when no transaction of another task is open, whose rows might never be committed. Raises
        `FileLocked` if it stays open."""
        while self._transaction is not None and _within.get() is not self._transaction:
            try:
                async with asyncio.timeout(WRITE_WAIT_S):
                    await self._ended.wait()
            except TimeoutError:
                raise FileLocked(
                    "a transaction of another task stays open; a test that reads elsewhere, too, arranges"
                    " in `async with core.db.transaction()`, not in the fixture `tx`"
                ) from None

    def image(self) -> bytes:
        """The content, for another database."""
        return self.raw.serialize()

    def close(self) -> None:
        self.raw.close()


class MemoryConnection:
    """The connection for writing, as `Tx` uses it. The pool has only one: one task writes at a time."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database
        self._raw = database.raw

    async def execute_fetchall(self, sql: str, params: Any) -> list[sqlite3.Row]:
        return self._raw.execute(sql, params).fetchall()

    async def execute(self, sql: str, params: Any) -> sqlite3.Cursor:
        if sql in {"COMMIT", "ROLLBACK"}:
            return self._database.end(sql)
        return self._raw.execute(sql, params)

    async def executescript(self, sql: str) -> None:
        self._raw.executescript(sql)

    def begin(self, *, durable: bool) -> bool:
        """As in `InPlaceWriter`; nothing is durable here, and nobody else locks."""
        self._database.begin()
        return True


class MemoryReader:
    """Reads what is committed, and what its own transaction has written."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def execute_fetchall(self, sql: str, params: Any) -> list[sqlite3.Row]:
        await self._database.wait_for_commit()
        return self._database.raw.execute(sql, params).fetchall()

    async def execute(self, sql: str, params: Any) -> sqlite3.Cursor:
        await self._database.wait_for_commit()
        return self._database.raw.execute(sql, params)


class MemoryBackend:
    """What `Database` needs, on a database that outlives it."""

    always_inline = True

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database
        self.in_place_reader = MemoryReader(database)
        self.in_place_writer = database.connection

    async def connect(self) -> None:
        """Nothing to do: the database is there."""

    async def disconnect(self) -> None:
        """Nothing to do: it stays, as a file does."""

    def connection(
        self, until_s: float | None = None, *, background: bool = False
    ) -> SQLiteConnection[MemoryConnection]:
        return SQLiteConnection(self._database.writer, until_s, background=background)

    def reading_connection(self) -> "FreeConnection":
        return FreeConnection(self.in_place_reader)

    def batches(self, alone: TakeWriteLock) -> "MemoryBatches":
        return MemoryBatches(self._database.raw, alone)


class FreeConnection:
    """Any number of callers read at the same time."""

    def __init__(self, reader: MemoryReader) -> None:
        self.raw_connection = reader

    async def acquire(self) -> None:
        """Nobody waits."""

    async def release(self) -> None:
        """Nobody waits for it."""


class MemoryBatches:
    """Commits write batches, all of a group in one transaction."""

    max_concurrent = 1

    def __init__(self, raw: sqlite3.Connection, alone: TakeWriteLock) -> None:
        self._raw = raw
        self._alone = alone

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def commit(self, units: Sequence[WriteBatch], until_s: float) -> Sequence[Outcome]:
        async with self._alone(until_s):
            return commit_units(self._raw, units)
