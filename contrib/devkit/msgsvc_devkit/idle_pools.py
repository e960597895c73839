"""Connections to PostgreSQL that outlive the service of a test, for the next service on the same database.

A connection costs 10 ms of processor time: the server forks, and reads its catalogue anew. A service opens
ten, which was half of what a test on PostgreSQL cost.
"""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from msgsvc_core.db import Database
from msgsvc_core.db.postgres_pool import PostgresPool

#: Connections that wait in one process. Three processes of a test run, each with a service and a worker,
#: stay below the 100 connections that PostgreSQL allows by default.
MOST_IDLE = 12

#: What a pool's connections have in common: the database, the name of their sessions, and their number.
_Key = tuple[str, str, int]


class IdlePools:
    """Pools of asyncpg that nobody uses, the newest last. All belong to the event loop of `open`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pools: list[tuple[_Key, asyncpg.Pool]] = []

    def open(self) -> None:
        """Keeps pools from now on, of services in the running event loop only, until `close`."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self._loop = None
        await self._close_all_but(0)

    def take(self, key: _Key) -> asyncpg.Pool | None:
        """A pool with that key, for the caller to use and close."""
        for index, (found, pool) in enumerate(self._pools):
            if found == key and self._loop is asyncio.get_running_loop():
                del self._pools[index]
                return pool
        return None

    async def put(self, key: _Key, pool: asyncpg.Pool) -> bool:
        """Keeps a pool of which no connection is in use. False if the caller has to close it."""
        if self._loop is not asyncio.get_running_loop():
            return False
        self._pools.append((key, pool))
        await self._close_all_but(MOST_IDLE)
        return True

    async def execute_on(self, url: str, task: Any) -> bool:
        """Calls `task` with a connection to the database. False if there is none, or it was lost."""
        for key, pool in self._pools:
            if key[0] == url and self._loop is asyncio.get_running_loop():
                with suppress(OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError):
                    async with pool.acquire() as connection:
                        await task(connection)
                        return True
        return False

    async def drop(self, url: str) -> bool:
        """Closes the connections to a database. False if another event loop has to."""
        gone = [pool for key, pool in self._pools if key[0] == url]
        if gone and self._loop is not asyncio.get_running_loop():
            return False
        self._pools = [(key, pool) for key, pool in self._pools if key[0] != url]
        for pool in gone:
            await pool.close()
        return True

    async def _close_all_but(self, limit: int) -> None:
        while self._pools and sum(pool.get_size() for _, pool in self._pools) > limit:
            _, oldest = self._pools.pop(0)
            await oldest.close()


class LastingPool(PostgresPool):
    """Takes its connections from `idle` if possible, and leaves them there after `keep`."""

    def __init__(self, db: Database, idle: IdlePools) -> None:
        super().__init__(db.url, max_size=db.usage.size, session=db.session_name)
        self._key = (db.url, db.session_name, db.usage.size)
        self._idle = idle
        self._is_kept = False

    def keep(self) -> None:
        """From now on `disconnect` leaves the connections open."""
        self._is_kept = True

    async def connect(self) -> None:
        self._pool: Any = self._idle.take(self._key)
        if self._pool is None:
            await super().connect()

    async def disconnect(self) -> None:
        if self._is_kept and self.wanted == 0 and await self._idle.put(self._key, self._pool):
            self._pool = None
        else:
            await super().disconnect()
