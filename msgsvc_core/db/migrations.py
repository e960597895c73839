"""Migrations: every owner, the core or a plugin, has Alembic scripts and a version table of its own.

So a plugin that is taken out leaves its tables behind, and nothing else trips over them
(docs/decisions/0004-migrations-per-owner.md).
"""

import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
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

from msgsvc_core.db.database import DatabaseUnavailable, sqlite_path
from msgsvc_core.db.sqlite import make_file


class DatabaseTooNew(Exception):
    """A newer release has migrated the database; this one must not touch it."""


#: Key of the advisory lock under which PostgreSQL is migrated; any fixed number of ours.
MIGRATION_LOCK = 7_136_742_001


@dataclass(frozen=True, slots=True)
class MigrationSource:
    """`owner` prefixes the owner's tables; `folder` holds its scripts, `0001_*.py` and on."""

    owner: str
    folder: Path

    @property
    def version_table(self) -> str:
        return f"{self.owner}_migrations"

    def scripts(self) -> ScriptDirectory:
        config = Config()
        config.set_main_option("script_location", str(self.folder))
        config.set_main_option("version_locations", str(self.folder))
        config.set_main_option("path_separator", "newline")
        return ScriptDirectory.from_config(config)


CORE_MIGRATIONS = MigrationSource("core", Path(__file__).parent.parent / "migrations")


async def migrate(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """Brings every owner's tables to their newest revision, in order; returns what was applied.

    One process migrates at a time; a failed step leaves the database as it was. Raises
    `DatabaseUnavailable`.
    """
    if url.startswith("sqlite"):
        _make_file(sqlite_path(url))

    def run(connection: Connection) -> list[str]:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        return [name for source in sources for name in _upgrade(connection, source)]

    applied: list[str] = await _in_transaction(url, run)
    return applied


async def applied_revisions(url: str, sources: Iterable[MigrationSource]) -> dict[str, str | None]:
    """The revision at which each owner's tables stand; None where there are none."""

    def run(connection: Connection) -> dict[str, str | None]:
        return {source.owner: _current(connection, source) for source in sources}

    revisions: dict[str, str | None] = await _in_transaction(url, run)
    return revisions


async def pending_revisions(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """What `migrate` would apply, as `owner:revision`."""
    applied = await applied_revisions(url, sources)
    return [
        f"{source.owner}:{script.revision}"
        for source in sources
        for script in _missing(source.scripts(), applied[source.owner])
    ]


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
    scripts = source.scripts()
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


def _make_file(path: Path) -> None:
    try:
        make_file(path)
    except (OSError, sqlite3.OperationalError) as error:
        raise DatabaseUnavailable(f"{path}: {error}") from error


async def _in_transaction(url: str, run: Any) -> Any:
    engine = _engine(url)
    try:
        async with _connected(engine) as connection:
            return await connection.run_sync(run)
    finally:
        await engine.dispose()


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A transaction. Raises `DatabaseUnavailable` when it can't be begun; what fails later is a
    script's mistake, and keeps its own name."""
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(engine.connect())
            await stack.enter_async_context(connection.begin())
        except (OSError, DBAPIError) as error:
            raise DatabaseUnavailable(str(getattr(error, "orig", error))) from error
        yield connection


def _engine(url: str) -> AsyncEngine:
    scheme, rest = url.split("://", 1)
    if scheme != "sqlite":
        return create_async_engine(f"postgresql+asyncpg://{rest}", poolclass=NullPool)
    engine = create_async_engine(f"sqlite+aiosqlite://{rest}", poolclass=NullPool)

    # Python's sqlite3 commits before DDL unless we begin transactions ourselves.
    @event.listens_for(engine.sync_engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
