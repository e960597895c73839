"""The pool of connections to PostgreSQL, with a timeout for every operation.

If a host crashes, or a proxy stops forwarding, connections stay open: nothing arrives and nothing fails. The
timeouts are set here and not in TCP (keepalive, TCP_USER_TIMEOUT): a proxy, or the kernel of a server whose
processes hang, still acknowledges packets.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from databases.backends.postgres import PostgresBackend, PostgresConnection

from msgsvc_core.db.errors import named_errors

#: Timeout in seconds for opening a connection, including TLS and authentication.
CONNECT_S = 5.0

#: Name of sessions in `pg_stat_activity` unless another one is given; a copy of the database refuses to start
#: while there are any that begin so.
SESSION = "msgsvc"

#: Timeout in seconds for a statement. The slowest page of a list of a million takes 0.2 s (decision 0044),
#: deleting a million old rows 1.3 s; larger operations are split. Migrations have separate connections
#: without a timeout.
STATEMENT_S = 60.0

#: Seconds that a caller waits for a connection while all are in use.
ACQUIRE_S = 30.0

#: Seconds for returning a connection, which waits until an aborted statement has ended; then the
#: connection is closed. Short, because a cancelled caller waits for it.
GIVE_BACK_S = 2.0

#: Timeout in seconds for closing the pool, after which its connections are aborted.
CLOSE_S = 5.0


class PostgresPool(PostgresBackend):
    """At most `max_size` connections. Exceeding a time limit raises `TimeoutError`, an `OSError` like other
    lost connections."""

    def __init__(self, url: str, *, max_size: int, session: str = SESSION) -> None:
        super().__init__(
            url,
            min_size=1,
            max_size=max_size,
            timeout=CONNECT_S,
            command_timeout=STATEMENT_S,
            reset=_leave_session,
            server_settings={"application_name": session},
        )
        self.max_size = max_size
        #: Connections in use or waited for.
        self.wanted = 0

    def connection(self) -> PostgresConnection:
        return _BoundedConnection(self, self._dialect)

    async def disconnect(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await super().disconnect()
        except TimeoutError:
            # asyncpg's pool has aborted its connections; the backend would still treat it as open.
            self._pool = None


class _BoundedConnection(PostgresConnection):
    def __init__(self, pool: PostgresPool, dialect: Any) -> None:
        super().__init__(pool, dialect)
        self._bounded = pool

    async def acquire(self) -> None:
        pool = self._bounded
        pool.wanted += 1
        try:
            # If one is available, opening it has its own timeout: a timer is 4 us, a twelfth of a short read.
            async with asyncio.timeout(ACQUIRE_S) if pool.wanted > pool.max_size else nullcontext():
                await super().acquire()
        except BaseException:
            pool.wanted -= 1
            raise

    async def release(self) -> None:
        # As in `databases`, but with a timeout, after which asyncpg closes the connection.
        connection, self._connection = self._connection, None
        pool = self._database._pool
        try:
            if connection is not None and _is_read_only(connection):
                # After a failover a new connection may reach the new primary.
                await connection.close(timeout=GIVE_BACK_S)
            # None: the pool was closed meanwhile, and aborted this connection too.
            if pool is not None:
                await pool.release(connection, timeout=GIVE_BACK_S)
        finally:
            self._bounded.wanted -= 1


def _is_read_only(connection: Any) -> bool:
    """Whether the server is read-only, as it reports itself (PostgreSQL 14 and newer)."""
    if connection.is_closed():
        return False
    settings = connection.get_settings()
    return "on" in {
        getattr(settings, "in_hot_standby", None),
        getattr(settings, "default_transaction_read_only", None),
    }


@asynccontextmanager
async def open_session(url: str, name: str) -> AsyncIterator[Any]:
    """A connection of asyncpg without timeouts, called `name`. Raises `DatabaseUnavailable`."""
    # A pool of one connection, so that it is opened like all others, with all options of the URL.
    backend = PostgresBackend(
        url,
        min_size=1,
        max_size=1,
        timeout=CONNECT_S,
        server_settings={"application_name": name},
    )
    with named_errors():
        await backend.connect()
    try:
        connection = backend.connection()
        await connection.acquire()
        try:
            yield connection.raw_connection
        finally:
            await connection.release()
    finally:
        await backend.disconnect()


async def _leave_session(_connection: Any) -> None:
    """Saves a round trip at each release: we change no session state, and asyncpg has ended any open
    transaction before it calls this."""
