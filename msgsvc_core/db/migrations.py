"""Runs migrations with Alembic. Import this only if a migration is pending: with its dependencies it takes
some 15 MiB (see `upgrading`)."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from alembic.util.exc import CommandError
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from msgsvc_core.db.errors import DatabaseUnavailable
from msgsvc_core.db.revisions import DatabaseTooNew, MigrationSource
from msgsvc_core.db.sqlite import BUSY_TIMEOUT_S

#: Key of the advisory lock for migrations on PostgreSQL; an arbitrary constant.
MIGRATION_LOCK = 7_136_742_001

#: Seconds before retrying a SQLite file that another process is migrating.
RETRY_S = 0.05

#: Alembic's `op` and `context` are process-wide proxies to the latest migration: run one at a time, across
#: services, loops and threads.
_one_at_a_time = threading.Lock()


async def upgrade(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """Applies the pending migrations of all owners in one transaction; returns them as `owner:revision`."""

    def run(connection: Connection) -> list[str]:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        return [name for source in sources for name in _upgrade(connection, source)]

    async with _alone():
        engine = new_engine(url)
        try:
            async with _connected(engine) as connection:
                return await connection.run_sync(run)
        finally:
            await engine.dispose()


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    # Polled: waiting inside the lock would block the event loop of its holder.
    while not _one_at_a_time.acquire(blocking=False):  # noqa: ASYNC110 - no event spans threads and loops
        await asyncio.sleep(RETRY_S)
    try:
        yield
    finally:
        _one_at_a_time.release()


def pending(sources: Sequence[MigrationSource], applied: Mapping[str, str | None]) -> list[str]:
    """What `upgrade` would apply to tables at these revisions."""
    return [
        f"{source.owner}:{script.revision}"
        for source in sources
        for script in _missing(scripts_of(source), applied[source.owner])
    ]


def scripts_of(source: MigrationSource) -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(source.folder))
    config.set_main_option("version_locations", str(source.folder))
    config.set_main_option("path_separator", "newline")
    return ScriptDirectory.from_config(config)


def _missing(scripts: ScriptDirectory, current: str | None) -> list[Any]:
    try:
        newest_first = list(scripts.iterate_revisions("head", current or "base"))
    except (CommandError, RevisionError) as error:
        raise DatabaseTooNew(f"the database is newer than this code: {error}") from error
    return newest_first[::-1]


def _current(connection: Connection, source: MigrationSource) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": source.version_table})
    return context.get_current_revision()


def _upgrade(connection: Connection, source: MigrationSource) -> list[str]:
    scripts = scripts_of(source)
    applied = [
        f"{source.owner}:{script.revision}"
        for script in _missing(scripts, _current(connection, source))
    ]

    def steps(revision: Any, _context: MigrationContext) -> Any:
        return scripts._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(
            connection=connection,
            version_table=source.version_table,
            transactional_ddl=True,
        )
        environment.run_migrations()
    return applied


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A transaction. Raises `DatabaseUnavailable` when it cannot be started; later failures are errors of
    the script and pass unchanged."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(engine.connect())
                await stack.enter_async_context(connection.begin())
            except (OSError, DBAPIError) as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise DatabaseUnavailable(str(getattr(error, "orig", error))) from error
            else:
                yield connection
                return
        await asyncio.sleep(RETRY_S)


def _is_locked(error: Exception) -> bool:
    """Whether another process holds the lock. SQLite's busy timeout covers most cases, but not two
    processes waiting for each other: one committing a new file, one that has started to read it."""
    cause = getattr(error, "orig", None)
    return isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause)


def new_engine(url: str) -> AsyncEngine:
    scheme, rest = url.split("://", 1)
    if scheme != "sqlite":
        return create_async_engine(f"postgresql+asyncpg://{rest}", poolclass=NullPool)
    engine = create_async_engine(f"sqlite+aiosqlite://{rest}", poolclass=NullPool)

    # Python's sqlite3 commits before DDL unless transactions are started explicitly.
    @event.listens_for(engine.sync_engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
