"""A `databases` backend for SQLite that keeps its connections.

The one that `databases` brings opens a connection and a thread for every acquire, which left 3 % of
aiosqlite's own speed and lost the PRAGMAs; this one has a writer and a few readers for its lifetime.
"""

import asyncio
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosqlite
import structlog
from databases.interfaces import ConnectionBackend, DatabaseBackend

#: Seconds to wait for another process that is writing, e.g. `msgsvc key create` beside a server.
BUSY_TIMEOUT_S = 10.0

#: Connections for reading. SQLite reads scale with threads only as far as the GIL lets them.
READERS = 3


def make_file(path: Path) -> None:
    """Makes the file if it is missing, for its owner alone. Raises OSError or sqlite3's error.

    A missing folder is refused: it is a mistyped path or a disk that is not mounted, and a new, empty
    database there would look like the loss of the old one.

    Not left to aiosqlite: a connection of its that can't be opened has a thread that outlives the
    loop for a moment, and then writes a traceback.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent.absolute()}; make it first")
    # SQLite gives its -wal and -shm files the mode of this one.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        # Not a logger of the module: it would keep the first stream that logs were configured with.
        structlog.get_logger(__name__).info("database_made", path=str(path.absolute()))
    sqlite3.connect(path).close()


class SQLiteConnection(ConnectionBackend):
    """Hands out one of the backend's kept connections."""

    def __init__(self, free: asyncio.Queue[aiosqlite.Connection]) -> None:
        self._free = free
        self._connection: aiosqlite.Connection | None = None

    async def acquire(self) -> None:
        self._connection = await self._free.get()

    async def release(self) -> None:
        assert self._connection is not None
        self._free.put_nowait(self._connection)
        self._connection = None

    @property
    def raw_connection(self) -> aiosqlite.Connection:
        assert self._connection is not None
        return self._connection


class InPlaceConnection:
    """Reads on the thread of the event loop, as far as `Tx` asks.

    A few rows by an index take some 50 µs, and most pages are in memory; the hop to a thread, which has
    to get Python's lock back from a busy loop for each of its steps, took 1.5 ms under load.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def execute_fetchall(self, sql: str, params: Any) -> list[sqlite3.Row]:
        return self._connection.execute(sql, params).fetchall()

    def close(self) -> None:
        self._connection.close()


class SQLiteBackend(DatabaseBackend):
    """`path` is a file; `synchronous` is SQLite's own setting (FULL survives a power cut)."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._path = path
        self._synchronous = synchronous
        self._connections: list[aiosqlite.Connection] = []
        # The queue of one writer is the lock around writers: contending in SQLite's busy handler
        # instead had a tenth of the throughput.
        self._writer: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()
        self._readers: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()
        #: For a few rows by an index; never waits, but fails when the file is locked.
        self.in_place: InPlaceConnection | None = None

    async def connect(self) -> None:
        make_file(self._path)
        try:
            self._writer.put_nowait(await self._open(read_only=False))
            for _ in range(READERS):
                self._readers.put_nowait(await self._open(read_only=True))
            self.in_place = InPlaceConnection(self._open_plain(read_only=True, timeout_s=0))
        except BaseException:
            # The thread of a connection that stays open keeps the process from ending.
            await self.disconnect()
            raise

    async def disconnect(self) -> None:
        for connection in self._connections:
            await connection.close()
        self._connections.clear()
        if self.in_place is not None:
            self.in_place.close()
            self.in_place = None
        self._writer = asyncio.Queue()
        self._readers = asyncio.Queue()

    def connection(self) -> SQLiteConnection:
        return SQLiteConnection(self._writer)

    def reading_connection(self) -> SQLiteConnection:
        return SQLiteConnection(self._readers)

    def open_for_batches(self, *, waits: bool) -> sqlite3.Connection:
        """A plain connection, which the caller closes; write on it only while nobody else holds
        `connection`. Where it doesn't wait for another process that is writing, it fails."""
        return self._open_plain(read_only=False, timeout_s=BUSY_TIMEOUT_S if waits else 0)

    def _open_plain(self, *, read_only: bool, timeout_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            isolation_level=None,
            timeout=timeout_s,
            # What is begun on the event loop's thread is committed on another, one after the other.
            check_same_thread=False,
            # A statement for every number of rows of the tables that are written most.
            cached_statements=512,
        )
        connection.row_factory = sqlite3.Row
        for name, value in self._pragmas(read_only=read_only).items():
            connection.execute(f"PRAGMA {name} = {value}")
        return connection

    def _pragmas(self, *, read_only: bool) -> dict[str, str]:
        return {
            "journal_mode": "WAL",
            "foreign_keys": "ON",
            "synchronous": self._synchronous,
            "query_only": "ON" if read_only else "OFF",
        }

    async def _open(self, *, read_only: bool) -> aiosqlite.Connection:
        # isolation_level=None: we begin transactions ourselves, and never deferred ones.
        connection = await aiosqlite.connect(
            self._path, isolation_level=None, timeout=BUSY_TIMEOUT_S
        )
        self._connections.append(connection)
        connection.row_factory = sqlite3.Row
        for name, value in self._pragmas(read_only=read_only).items():
            await connection.execute_fetchall(f"PRAGMA {name} = {value}")
        return connection
