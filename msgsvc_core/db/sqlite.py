"""SQLite backend with the interface of `databases` and persistent connections.

The backend of `databases` opens a connection and a thread for every acquire, which left 3 % of aiosqlite's
speed and lost the PRAGMAs; this one has one writer and a few readers for its lifetime.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Generic, TypeVar

import aiosqlite
import structlog

from msgsvc_core.db.errors import FileLocked
from msgsvc_core.db.in_place import InPlaceReader, InPlaceWriter
from msgsvc_core.db.priority_pool import PriorityPool

T = TypeVar("T")
C = TypeVar("C")

#: Seconds to wait for another process that reads or opens the file.
BUSY_TIMEOUT_S = 10.0

#: Seconds after which a write fails because the file is locked: for the queue of this process and for
#: other writing processes, e.g. `msgsvc key create` beside a server, together.
WRITE_WAIT_S = 10.0

#: Seconds before retrying to start a transaction while another process writes: initial and maximum.
LOCKED_RETRY_S = (0.001, 0.02)

#: Seconds before retrying a statement to which SQLite's busy timeout does not apply.
BUSY_RETRY_S = 0.02

#: KiB of page cache of the connection that writes many rows. With SQLite's default of 2 MiB it wrote and read
#: the pages of large indexes repeatedly.
WRITER_CACHE_KIB = 16 * 1024

#: Bytes to which the WAL is truncated after the checkpoint of a large transaction, such as a migration.
LOG_BYTES = 64 * 1024 * 1024

#: Pages of the WAL after which it is checkpointed; a page that was written a hundred times is copied once.
#: The WAL has 16 MiB then.
CHECKPOINT_PAGES = 4000

#: Connections for reading. SQLite reads scale with threads only as far as the GIL lets them.
READERS = 3


def create_file(path: Path) -> None:
    """Creates the file if it is missing, readable only by its owner. Raises OSError or sqlite3's error.

    A missing folder is an error: it is a mistyped path or a disk that is not mounted, and a new, empty
    database there would look like the loss of the old one.

    Not left to aiosqlite: if its connection can't be opened, its thread outlives the event loop for a moment,
    and then writes a traceback.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent.absolute()}; make it first")
    # SQLite creates its -wal and -shm files with the mode of this one.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        # Not a module-level logger: it would keep the stream of the first logging configuration.
        structlog.get_logger(__name__).info("database_made", path=str(path.absolute()))
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
        if not path.stat().st_size:
            # Of an empty file VACUUM writes the header alone, which keeps the setting: see `shrinking`.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")


class SQLiteConnection(Generic[C]):
    """Acquires one of the backend's persistent connections, waiting until the loop time `until_s`;
    `background` waits behind what is not."""

    def __init__(
        self,
        free: PriorityPool[C],
        until_s: float | None = None,
        *,
        background: bool = False,
    ) -> None:
        self._free = free
        self._until_s = until_s
        self._background = background
        self._connection: C | None = None

    async def acquire(self) -> None:
        """Raises `FileLocked` if others of this process use it for too long."""
        self._connection = self._free.take()
        if self._connection is not None:
            # Saves a timer, 4 us.
            return
        try:
            async with asyncio.timeout_at(self._until_s):
                self._connection = await self._free.wait(background=self._background)
        except TimeoutError:
            raise FileLocked("the file is locked: others have been writing for too long") from None

    async def release(self) -> None:
        """Never waits."""
        assert self._connection is not None
        self._free.put(self._connection)
        self._connection = None

    @property
    def raw_connection(self) -> C:
        assert self._connection is not None
        return self._connection


class SQLiteBackend:
    """`path` is a file; `synchronous` is SQLite's own setting (FULL survives a power cut)."""

    #: Only what is `inline` runs on the event loop's thread.
    always_inline = False

    def __init__(self, path: Path, synchronous: str) -> None:
        self._path = path
        self._synchronous = synchronous
        self._connections: list[aiosqlite.Connection] = []
        # The pool of one writer serves as the write lock: contending in SQLite's busy handler instead had a
        # tenth of the throughput.
        self._writer: PriorityPool[aiosqlite.Connection] = PriorityPool()
        self._readers: PriorityPool[aiosqlite.Connection] = PriorityPool()
        self.in_place_reader: InPlaceReader | None = None
        self.in_place_writer: InPlaceWriter | None = None

    async def connect(self) -> None:
        create_file(self._path)
        try:
            writing = await self._open(read_only=False)
            # Waiting for another process happens in `retry_while_locked`, where it can be cancelled.
            await _patiently(writing, "PRAGMA busy_timeout = 0")
            self._writer.put(writing)
            for _ in range(READERS):
                self._readers.put(await self._open(read_only=True))
            self.in_place_reader = InPlaceReader(self._open_plain(read_only=True, timeout_s=0))
            writer = self._open_plain(read_only=False, timeout_s=0)
            writer.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
            self.in_place_writer = InPlaceWriter(writer)
        except BaseException:
            # The thread of an open connection would prevent the process from exiting.
            await self.disconnect()
            raise

    async def disconnect(self) -> None:
        for connection in self._connections:
            await connection.close()
        self._connections.clear()
        if self.in_place_reader is not None:
            self.in_place_reader.close()
            self.in_place_reader = None
        if self.in_place_writer is not None:
            self.in_place_writer.close()
            self.in_place_writer = None
        self._writer = PriorityPool()
        self._readers = PriorityPool()

    def connection(
        self, until_s: float | None = None, *, background: bool = False
    ) -> SQLiteConnection[aiosqlite.Connection]:
        return SQLiteConnection(self._writer, until_s, background=background)

    def reading_connection(self) -> SQLiteConnection[aiosqlite.Connection]:
        return SQLiteConnection(self._readers)

    def open_for_batches(self) -> sqlite3.Connection:
        """A plain connection, which the caller closes; write on it only while no other task holds
        `connection`."""
        return self._open_plain(read_only=False, timeout_s=0)

    def _open_plain(self, *, read_only: bool, timeout_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            isolation_level=None,
            timeout=BUSY_TIMEOUT_S,
            # Started on the event loop's thread, committed on another, strictly in sequence.
            check_same_thread=False,
            # One cached statement per row count for the most written tables.
            cached_statements=512,
        )
        connection.row_factory = sqlite3.Row
        for name, value in self._pragmas(read_only=read_only).items():
            connection.execute(f"PRAGMA {name} = {value}")
        # Only now: until here another process may be opening the file.
        connection.execute(f"PRAGMA busy_timeout = {round(timeout_s * 1000)}")
        return connection

    def _pragmas(self, *, read_only: bool) -> dict[str, str]:
        return {
            "journal_mode": "WAL",
            "foreign_keys": "ON",
            "synchronous": self._synchronous,
            "query_only": "ON" if read_only else "OFF",
            # Otherwise an INSERT of many rows creates a file for its statement journal.
            "temp_store": "MEMORY",
            "wal_autocheckpoint": str(CHECKPOINT_PAGES),
            "journal_size_limit": str(LOG_BYTES),
        }

    async def _open(self, *, read_only: bool) -> aiosqlite.Connection:
        # isolation_level=None: transactions are started explicitly, and never deferred.
        connection = await aiosqlite.connect(
            self._path, isolation_level=None, timeout=BUSY_TIMEOUT_S
        )
        self._connections.append(connection)
        connection.row_factory = sqlite3.Row
        for name, value in self._pragmas(read_only=read_only).items():
            await _patiently(connection, f"PRAGMA {name} = {value}")
        return connection


async def retry_while_locked(write: Callable[[], Awaitable[T]], until_s: float) -> T:
    """Result of `write`, which is retried while it raises `FileLocked`: at least once, and until the loop
    time `until_s`. Not left to SQLite's busy handler, which can't be cancelled."""
    pause_s, longest_s = LOCKED_RETRY_S
    while True:
        try:
            return await write()
        except FileLocked:
            if asyncio.get_running_loop().time() + pause_s > until_s:
                raise
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, longest_s)


async def _patiently(connection: aiosqlite.Connection, sql: str) -> None:
    """Executes it once the lock is free: SQLite's busy timeout does not apply where several processes
    create a file concurrently and each sets its journal mode."""
    ends_at_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            await connection.execute_fetchall(sql)
        except sqlite3.OperationalError as error:
            is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > ends_at_s:
                raise
            await asyncio.sleep(BUSY_RETRY_S)
        else:
            return
