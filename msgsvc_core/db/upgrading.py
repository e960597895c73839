"""Upgrades every owner's tables to the latest revision.

Alembic, some 15 MiB of memory, is loaded only if a migration is pending.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.revisions import MigrationSource, Phase, applied_in, read_applied
from msgsvc_core.db.schema import Schema, compare, due
from msgsvc_core.db.sessions import hold_off_contract
from msgsvc_core.db.sqlite import BUSY_TIMEOUT_S
from msgsvc_core.db.tx import Tx


async def migrate(
    url: str,
    sources: Sequence[MigrationSource],
    phase: Phase | None = None,
    *,
    has_sessions: bool = False,
) -> list[str]:
    """Applies the pending steps of a phase, or of both; returns them as `owner:revision`.

    One process migrates at a time. A new database, and any on SQLite, is migrated in one transaction; on
    PostgreSQL each further step is one, and those before a failed one stay. Raises `DatabaseTooNew`,
    `DatabaseUnavailable`, and `MigrationRefused`: a step that contracts does not run while processes of
    another release use the database. Behind a connection pooler nothing is applied, unless `has_sessions`
    says that it keeps a connection for each session.
    """
    if await asyncio.to_thread(_is_newest_file, url, sources):
        return []
    if not due(await read_schema(url, sources), phase):
        return []
    from msgsvc_core.db import migrations  # noqa: PLC0415 - loads Alembic, 16 MiB

    return await migrations.upgrade(url, sources, phase, has_sessions=has_sessions)


async def pending_revisions(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """What `migrate` would apply, as `owner:revision`. Raises as `migrate` does."""
    return [step.name for step in due(await read_schema(url, sources), None)]


async def read_schema(url: str, sources: Sequence[MigrationSource]) -> Schema:
    """Raises `DatabaseTooNew`, `DatabaseUnavailable`."""
    return compare(sources, await read_applied(url, sources))


async def read_schema_in(tx: Tx, sources: Sequence[MigrationSource]) -> Schema:
    """As `read_schema`, within a transaction; until it ends, no migration contracts the schema. Raises
    `DatabaseTooNew`."""
    if tx.dialect == "postgresql":
        await hold_off_contract(tx)
    return compare(sources, await applied_in(tx, sources))


def _is_newest_file(url: str, sources: Sequence[MigrationSource]) -> bool:
    """Whether a file certainly has the newest revisions.

    Nearly every start finds it so, and one plain connection suffices for it: a `Database` opens seven, with a
    thread for most of them. All other cases, including errors, are left to `Database`.
    """
    if not url.startswith("sqlite"):
        return False
    path: Path = sqlite_path(url)
    with suppress(sqlite3.Error, OSError):
        if path.stat().st_size:
            with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
                return all(
                    connection.execute(f"SELECT version_num FROM {each.version_table}").fetchall()
                    == [(each.newest(),)]
                    for each in sources
                )
    return False
