"""Runs migrations with Alembic. Import this only if a migration is pending: with its dependencies it takes
some 15 MiB (see `upgrading`)."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from msgsvc_core.db.errors import DatabaseUnavailable, MigrationRefused
from msgsvc_core.db.postgres_urls import connect_arguments
from msgsvc_core.db.revisions import (
    MIGRATING_SESSION,
    Applied,
    AppliedStep,
    MigrationSource,
    Phase,
    Step,
    format_history,
    parse_history,
)
from msgsvc_core.db.schema import Schema, compare, due, steps_of, this_release
from msgsvc_core.db.scripts import scripts_of
from msgsvc_core.db.sessions import CONTRACT_LOCK, OTHER_SESSIONS, session_name
from msgsvc_core.db.sqlite import BUSY_TIMEOUT_S

#: Key of the advisory lock for migrations on PostgreSQL; an arbitrary constant.
MIGRATION_LOCK = 7_136_742_001

#: Seconds before retrying a SQLite file that another process is migrating, or a lock on PostgreSQL.
RETRY_S = 0.05

#: Seconds for which PostgreSQL may still list the session of a process that has just ended.
SESSION_ENDS_S = 2.0

#: Seconds that a step waits for a table which a transaction uses. All later users of the table wait behind it
#: meanwhile, so it gives way and tries again, for a minute and a half in all. Less than claims wait (0.1), so
#: that no request gets a 425, and than the server waits until it ends one of two transactions that wait for
#: each other (`deadlock_timeout`, 1): it would be a request's.
LOCK_WAIT_S = 0.05
LOCK_ATTEMPTS = 100
LOCK_PAUSES_S = (0.1, 0.2, 0.5, 1.0)

#: SQLSTATEs of a lock timeout and a deadlock.
_IN_USE = ("55P03", "40P01")

#: Indexes of an owner whose CREATE INDEX CONCURRENTLY was interrupted. That of a partitioned table (`I`) is
#: not valid before each partition has its own, and `indexes.create_index` goes on with it.
_INVALID_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class c ON c.oid = indexrelid"
    " WHERE NOT indisvalid AND c.relkind = 'i' AND starts_with(indrelid::regclass::text, :prefix)"
)

#: Alembic's `op` and `context` are process-wide proxies to the latest migration: run one at a time, across
#: services, loops and threads.
one_at_a_time = threading.Lock()

#: `scripts_of`, which imports all scripts of an owner, once for each owner of an upgrade.
_ReadScripts = Callable[[MigrationSource], ScriptDirectory]


async def upgrade(
    url: str,
    sources: Sequence[MigrationSource],
    phase: Phase | None = None,
    *,
    has_sessions: bool = False,
) -> list[str]:
    """Applies the pending steps of a phase, or of both; see `upgrading.migrate`."""
    async with _alone():
        if url.startswith("sqlite"):
            steps = await _upgrade_sqlite(url, sources, phase)
        else:
            steps = await _upgrade_postgres(url, sources, phase, has_sessions=has_sessions)
        return [step.name for step in steps]


async def _upgrade_sqlite(
    url: str, sources: Sequence[MigrationSource], phase: Phase | None
) -> list[Step]:
    """In one transaction. Steps that contract need the file for themselves."""
    read = cache(scripts_of)

    def run(connection: Connection) -> list[Step] | None:
        schema = _read_schema(connection, sources)
        steps = due(schema, phase)
        if _contracts(steps, schema) and not is_exclusive:
            return None
        for step in steps:
            _apply(connection, _source_of(step, sources), step, read)
        return steps

    for is_exclusive in (False, True):
        engine = new_engine(url, exclusive=is_exclusive)
        try:
            async with _connected(engine, is_exclusive=is_exclusive) as connection:
                applied = await connection.run_sync(run)
        finally:
            await engine.dispose()
        if applied is not None:
            return applied
    raise AssertionError("an exclusive connection applies all steps")


async def _upgrade_postgres(
    url: str, sources: Sequence[MigrationSource], phase: Phase | None, *, has_sessions: bool
) -> list[Step]:
    """Under advisory locks of a session that has no transaction: CREATE INDEX CONCURRENTLY waits for all
    transactions that have begun, also for those that wait for a lock."""
    engine = new_engine(url, session=MIGRATING_SESSION)
    read = cache(scripts_of)
    try:
        async with AsyncExitStack() as stack:
            try:
                if not has_sessions:
                    await _check_sessions(url)
                guard = await stack.enter_async_context(engine.connect())
                await guard.execution_options(isolation_level="AUTOCOMMIT")
                await _lock(guard, MIGRATION_LOCK)
            except (OSError, DBAPIError) as error:
                raise DatabaseUnavailable(str(getattr(error, "orig", error))) from error
            schema = await guard.run_sync(_read_schema, sources)
            steps = due(schema, phase)
            if _contracts(steps, schema):
                await _lock(guard, CONTRACT_LOCK)
                await _check_no_others(guard, session_name(sources))
            new = {each.owner for each in schema if each.is_new}
            for group in _groups(steps, new):
                await _apply_group(engine, group, sources, read, is_new=group[0].owner in new)
            return steps
    finally:
        await engine.dispose()


async def _check_sessions(url: str) -> None:
    """Raises `DatabaseUnavailable` if a pooler answers: a lock of a session would stay with a connection of
    the pooler's, and the next migration would wait for it for ever."""
    from msgsvc_core.db.postgres_pool import open_session  # noqa: PLC0415 - not on SQLite

    async with open_session(url, MIGRATING_SESSION):
        pass


async def _lock(guard: AsyncConnection, key: int) -> None:
    # Polled: a statement that waits holds a snapshot, which CREATE INDEX CONCURRENTLY waits for.
    attempt = text(f"SELECT pg_try_advisory_lock({key})")
    while not (await guard.execute(attempt)).scalar():  # noqa: ASYNC110 - other processes hold it
        await asyncio.sleep(RETRY_S)


async def _check_no_others(guard: AsyncConnection, own: str) -> None:
    deadline = time.monotonic() + SESSION_ENDS_S
    while others := (await guard.execute(text(OTHER_SESSIONS), {"name": own})).scalars().all():
        if time.monotonic() > deadline:
            raise MigrationRefused(
                f"processes of another release use the database: {', '.join(others)}. What they need would"
                " be removed: stop them first, or run `msgsvc migrate --phase expand` only"
            )
        await asyncio.sleep(RETRY_S)


def _contracts(steps: Sequence[Step], schema: Schema) -> bool:
    """Whether one of the steps removes what a process of an earlier release may use."""
    used = {each.owner for each in schema if not each.is_new}
    return any(step.phase == "contract" and step.owner in used for step in steps)


def _groups(steps: Sequence[Step], new: Collection[str]) -> Iterator[list[Step]]:
    """The steps of each transaction: those of `new` owners together, all others alone, so that their locks
    are short."""
    group = list[Step]()
    for step in steps:
        if step.owner in new:
            group.append(step)
            continue
        if group:
            yield group
        group = []
        yield [step]
    if group:
        yield group


async def _apply_group(
    engine: AsyncEngine,
    group: Sequence[Step],
    sources: Sequence[MigrationSource],
    read: _ReadScripts,
    *,
    is_new: bool,
) -> None:
    def run(connection: Connection) -> None:
        if is_new:
            event.listen(connection, "before_cursor_execute", _index_at_once, retval=True)
        for step in group:
            _apply(connection, _source_of(step, sources), step, read, in_transaction=is_new)

    if not is_new and not group[0].transactional:
        await _drop_invalid_indexes(engine, group[0].owner)
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.run_sync(run)
        return
    for attempt in range(LOCK_ATTEMPTS):
        try:
            async with engine.begin() as connection:
                await connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))
                await connection.run_sync(run)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _IN_USE:
                raise
            refusal = MigrationRefused(
                f"{group[0].name} found a table in use by other transactions {LOCK_ATTEMPTS} times, for"
                f" {LOCK_WAIT_S:g} s each: {error.orig}. Nothing of it was applied: run the command again"
                " when there is less to do, or look for long transactions in pg_stat_activity"
            )
            refusal.__cause__ = error
        else:
            return
        await asyncio.sleep(LOCK_PAUSES_S[min(attempt, len(LOCK_PAUSES_S) - 1)])
    raise refusal


def _index_at_once(
    _connection: Connection,
    _cursor: Any,
    statement: str,
    parameters: Any,
    _context: Any,
    _executemany: bool,
) -> tuple[str, Any]:
    """Tables that nobody writes to yet are indexed in the transaction that creates them."""
    return statement.replace(" INDEX CONCURRENTLY ", " INDEX "), parameters


async def _drop_invalid_indexes(engine: AsyncEngine, owner: str) -> None:
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        found = await connection.execute(text(_INVALID_INDEXES), {"prefix": f"{owner}_"})
        for name in found.scalars().all():
            await connection.execute(text(f"DROP INDEX CONCURRENTLY {name}"))


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    # Polled: waiting inside the lock would block the event loop of its holder.
    while not one_at_a_time.acquire(blocking=False):  # noqa: ASYNC110 - no event spans threads and loops
        await asyncio.sleep(RETRY_S)
    try:
        yield
    finally:
        one_at_a_time.release()


def _read_schema(connection: Connection, sources: Sequence[MigrationSource]) -> Schema:
    return compare(sources, {source.owner: _applied(connection, source) for source in sources})


def _applied(connection: Connection, source: MigrationSource) -> Applied:
    catalogue = inspect(connection)
    if not catalogue.has_table(source.version_table):
        return Applied(None)
    history = "history" if _has_history(connection, source) else "NULL"
    row = connection.execute(
        text(f"SELECT version_num, {history} FROM {source.version_table}")
    ).first()
    return Applied(None) if row is None else Applied(row[0], parse_history(row[1]))


def _has_history(connection: Connection, source: MigrationSource) -> bool:
    # Not by `inspect`, which reads all that is known of the table, and is asked after every step.
    columns = (
        "SELECT name FROM pragma_table_info(:table)"
        if connection.dialect.name == "sqlite"
        else "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:table) AND NOT attisdropped"
    )
    found = connection.execute(text(columns), {"table": source.version_table})
    return "history" in found.scalars().all()


def _source_of(step: Step, sources: Sequence[MigrationSource]) -> MigrationSource:
    return next(source for source in sources if source.owner == step.owner)


def _apply(
    connection: Connection,
    source: MigrationSource,
    step: Step,
    read: _ReadScripts,
    *,
    in_transaction: bool = False,
) -> None:
    scripts = read(source)

    def steps(revision: Any, _context: MigrationContext) -> Any:
        return scripts._upgrade_revs(step.revision, revision)

    in_transaction |= step.transactional or connection.dialect.name == "sqlite"
    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(
            connection=connection,
            version_table=source.version_table,
            transactional_ddl=in_transaction,
        )
        environment.run_migrations()
    _record(connection, source, step)


def _record(connection: Connection, source: MigrationSource, step: Step) -> None:
    """Adds the step to the history, by which earlier releases see whether they may use the database. That of
    a database of an early release begins with the steps that led to it."""
    table = source.version_table
    if not _has_history(connection, source):
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN history TEXT"))
    recorded = parse_history(connection.execute(text(f"SELECT history FROM {table}")).scalar())
    known = steps_of(source)
    before = recorded or [
        AppliedStep(each.revision, each.phase, "") for each in known[: known.index(step)]
    ]
    history = [*before, AppliedStep(step.revision, step.phase, this_release())]
    connection.execute(
        text(f"UPDATE {table} SET history = :history"), {"history": format_history(history)}
    )


@asynccontextmanager
async def _connected(
    engine: AsyncEngine, *, is_exclusive: bool = False
) -> AsyncIterator[AsyncConnection]:
    """A transaction on SQLite. Raises `DatabaseUnavailable` when it cannot be started, `MigrationRefused` if
    another process has a file open that this one needs for itself; later failures are errors of the script
    and pass unchanged."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        async with AsyncExitStack() as stack:
            try:
                connection = await stack.enter_async_context(engine.connect())
                await stack.enter_async_context(connection.begin())
            except (OSError, DBAPIError) as error:
                if _is_locked(error) and is_exclusive:
                    file = engine.url.database
                    raise MigrationRefused(
                        f"another process has {file} open. What it needs would be removed: stop the service"
                        f" first (`fuser {file}` lists its processes), or run `msgsvc migrate --phase expand`"
                        " only"
                    ) from error
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


def new_engine(url: str, *, session: str = "msgsvc-copy", exclusive: bool = False) -> AsyncEngine:
    """Connections that are called `session` on PostgreSQL; `exclusive` ones to SQLite's file exclude those of
    other processes."""
    scheme, rest = url.split("://", 1)
    if scheme != "sqlite":
        import asyncpg  # noqa: PLC0415 - not on SQLite

        connect = partial(
            asyncpg.connect,
            **connect_arguments(url),
            server_settings={"application_name": session},
        )
        return create_async_engine(
            "postgresql+asyncpg://", poolclass=NullPool, async_creator=connect
        )
    engine = create_async_engine(f"sqlite+aiosqlite://{rest}", poolclass=NullPool)

    # Python's sqlite3 commits before DDL unless transactions are started explicitly.
    @event.listens_for(engine.sync_engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        if exclusive:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")

    @event.listens_for(engine.sync_engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
