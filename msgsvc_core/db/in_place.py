"""SQLite on the event loop's thread, for a few rows found by an index.

Such a statement takes some 50 µs, mostly from pages in memory. A thread hop has to reacquire the GIL from a
busy loop for each step and row, which took 1.5 ms under load. Only the commit, which waits for the disk,
runs on another thread.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds of consecutive statements before other tasks of the event loop get to run.
TURN_S = 0.002

#: PRAGMAs of a commit that isn't durable: it leaves syncing the WAL (1 is NORMAL) and checkpointing it to the
#: next durable commit.
_FLEETING = {"synchronous": 1, "wal_autocheckpoint": 0}


class InPlaceReader:
    """The part of a connection that `Tx` uses; it never waits, but fails if the file is locked."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def execute_fetchall(self, sql: str, params: Any) -> list[sqlite3.Row]:
        return self._connection.execute(sql, params).fetchall()

    def close(self) -> None:
        self._connection.close()


class InPlaceWriter:
    """The same for writes, used by the holder of the backend's single write connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        #: The PRAGMAs' values for durable commits, by name.
        self._lasting = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _FLEETING
        }
        self._waits_for_disk = True
        #: For calls that wait for the disk, or for another process that is writing.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-commit")
        self._turn_ends_s = 0.0

    async def execute_fetchall(self, sql: str, params: Any) -> list[sqlite3.Row]:
        rows = self.connection.execute(sql, params).fetchall()
        await self._let_others()
        return rows

    async def execute(self, sql: str, params: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self._waits_for_disk:
            return await self.in_thread(self.connection.execute, sql)
        cursor = self.connection.execute(sql, params)
        await self._let_others()
        return cursor

    def begin(self, *, durable: bool = True) -> bool:
        """False if another process has locked the file. A commit with `durable=False` doesn't wait for the
        disk."""
        if durable is not self._waits_for_disk:
            # SQLite applies these between transactions only.
            for name, fleeting in _FLEETING.items():
                value = self._lasting[name] if durable else min(self._lasting[name], fleeting)
                self.connection.execute(f"PRAGMA {name} = {value}")
            self._waits_for_disk = durable
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        self._turn_ends_s = time.monotonic() + TURN_S
        return True

    def in_thread(self, work: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """Runs `work` on the other thread."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def close(self) -> None:
        self.connection.close()
        self._thread.shutdown(wait=False)

    async def _let_others(self) -> None:
        if time.monotonic() > self._turn_ends_s:
            await asyncio.sleep(0)
            self._turn_ends_s = time.monotonic() + TURN_S
