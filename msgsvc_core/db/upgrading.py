"""Upgrades every owner's tables to the latest revision.

Alembic, some 15 MiB of memory, is loaded only if a migration is pending.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.revisions import MigrationSource, applied_revisions
from msgsvc_core.db.sqlite import BUSY_TIMEOUT_S


async def migrate(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """Upgrades every owner's tables to their latest revision, in order; returns what was applied.

    One process migrates at a time; a failed step leaves the database as it was. Raises
    `DatabaseTooNew`, `DatabaseUnavailable`.
    """
    if await _is_newest(url, sources):
        return []
    from msgsvc_core.db import migrations  # noqa: PLC0415 - loads Alembic, 16 MiB

    return await migrations.upgrade(url, sources)


async def pending_revisions(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """What `migrate` would apply, as `owner:revision`. Raises as `migrate` does."""
    if await _is_newest(url, sources):
        return []
    from msgsvc_core.db import migrations  # noqa: PLC0415 - loads Alembic, 16 MiB

    return migrations.pending(sources, await applied_revisions(url, sources))


async def _is_newest(url: str, sources: Sequence[MigrationSource]) -> bool:
    newest = {source.owner: source.newest() for source in sources}
    if url.startswith("sqlite") and await asyncio.to_thread(
        _file_stands_at, sqlite_path(url), [(s.version_table, newest[s.owner]) for s in sources]
    ):
        return True
    applied = await applied_revisions(url, sources)
    return None not in newest.values() and applied == newest


def _file_stands_at(path: Path, revisions: Sequence[tuple[str, str | None]]) -> bool:
    """Whether a file certainly has these revisions, given by version table.

    Nearly every start finds it so, and one plain connection suffices for it: a `Database` opens seven, with a
    thread for most of them. All other cases, including errors, are left to `Database`.
    """
    with suppress(sqlite3.Error, OSError):
        if path.stat().st_size:
            with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
                return all(
                    connection.execute(f"SELECT version_num FROM {table}").fetchall() == [(one,)]
                    for table, one in revisions
                )
    return False
