"""The pool of connections to PostgreSQL, with a timeout for every operation.

If a host crashes, or a proxy stops forwarding, connections stay open: nothing arrives and nothing fails. The
timeouts are set here and not in TCP (keepalive, TCP_USER_TIMEOUT): a proxy, or the kernel of a server whose
processes hang, still acknowledges packets.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import asyncpg
import structlog
from databases.backends.postgres import PostgresBackend, PostgresConnection

from msgsvc_core.db.errors import DatabaseUnavailable, named_errors
from msgsvc_core.db.postgres_urls import connect_arguments

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


#: What a connection pooler leaves no session for.
NEEDS_SESSION = (
    "a connection pooler answers, and this needs a session of PostgreSQL itself: set database_direct_url to"
    " the address of PostgreSQL, or to that of the pooler if it keeps a connection for each session"
)

log = structlog.get_logger(__name__)


class PostgresPool(PostgresBackend):
    """At most `max_size` connections. Exceeding a time limit raises `TimeoutError`, an `OSError` like other
    lost connections.

    Behind a pooler such as PgBouncer in transaction mode, a statement that one transaction has prepared is
    missing, or another process's, in the next. If a pooler answers, nothing is prepared under a name, unless
    `has_sessions` says that it keeps a connection for each session.
    """

    def __init__(
        self, url: str, *, max_size: int, session: str = SESSION, has_sessions: bool = False
    ) -> None:
        super().__init__(url)
        self._pool: Any = None
        self._arguments = {
            **connect_arguments(url),
            "min_size": 1,
            "max_size": max_size,
            "timeout": CONNECT_S,
            "command_timeout": STATEMENT_S,
            "reset": _leave_session,
            "server_settings": {"application_name": session},
        }
        self._has_sessions = has_sessions
        #: Whether a pooler answers that hands out connections; known after `connect`.
        self.is_pooled = False
        self.max_size = max_size
        #: Connections in use or waited for.
        self.wanted = 0

    async def connect(self) -> None:
        pool = await asyncpg.create_pool(**self._arguments)
        try:
            async with pool.acquire() as connection:
                self.is_pooled = not self._has_sessions and await answers_for_another(connection)
            if self.is_pooled:
                await pool.close()
                pool = await asyncpg.create_pool(**self._arguments, statement_cache_size=0)
        except BaseException:
            pool.terminate()
            raise
        self._pool = pool

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
async def open_session(url: str, name: str, *, has_sessions: bool = False) -> AsyncIterator[Any]:
    """A connection of asyncpg without timeouts, called `name`. Raises `DatabaseUnavailable`, also if a pooler
    answers, unless `has_sessions` says that it keeps a connection for each session."""
    with named_errors():
        raw = await asyncpg.connect(
            **connect_arguments(url),
            timeout=CONNECT_S,
            server_settings={"application_name": name},
        )
    try:
        if not has_sessions and await answers_for_another(raw):
            raise DatabaseUnavailable(NEEDS_SESSION)
        yield raw
    finally:
        with suppress(OSError, TimeoutError):
            await raw.close(timeout=CLOSE_S)


async def answers_for_another(connection: Any) -> bool:
    """Whether a pooler is in between: the server process that answers is not the one of the connection."""
    # In a transaction, for which every pooler keeps one connection, and without a name, which a statement of
    # another process could have there.
    async with connection.transaction(readonly=True):
        prepared = await connection.prepare("SELECT pg_backend_pid()", name="")
        answering: int = await prepared.fetchval()
    named: int = connection.get_server_pid()
    return answering != named


async def _leave_session(_connection: Any) -> None:
    """Saves a round trip at each release: we change no session state, and asyncpg has ended any open
    transaction before it calls this."""
