"""At which revision every owner's tables stand, and bringing them to the newest.

Every owner, the core or a plugin, has Alembic scripts and a version table of its own
(docs/decisions/0004-migrations-per-owner.md). What stands where is found out here by reading; Alembic
itself, some 15 MiB of memory, is loaded only where there is something to do.
"""

import asyncio
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from msgsvc_core.db.database import Database, sqlite_path
from msgsvc_core.db.sqlite import BUSY_TIMEOUT_S
from msgsvc_core.db.tx import Tx

#: How a script names itself and the one before it.
_NAMED = re.compile(
    r"""^(revision|down_revision)\b[^=\n]*=\s*(?:None|["']([^"'\n]+)["'])\s*(?:#.*)?$""",
    re.MULTILINE,
)


class DatabaseTooNew(Exception):
    """A newer release has migrated the database; this one must not touch it."""


@dataclass(frozen=True, slots=True)
class MigrationSource:
    """`owner` prefixes the owner's tables; `folder` holds its scripts, `0001_*.py` and on."""

    owner: str
    folder: Path

    @property
    def version_table(self) -> str:
        return f"{self.owner}_migrations"

    def newest(self) -> str | None:
        """The revision that no other follows; None if the scripts are not so plain that reading
        them is enough to be sure."""
        revisions, followed = set[str](), set[str]()
        for script in self.folder.glob("[!_]*.py"):
            named = _NAMED.findall(script.read_text("utf-8"))
            if sorted(which for which, _ in named) != ["down_revision", "revision"]:
                return None
            revisions.update(name for which, name in named if which == "revision")
            followed.update(name for which, name in named if which == "down_revision")
        last = revisions - followed
        return last.pop() if len(last) == 1 else None


CORE_MIGRATIONS = MigrationSource("core", Path(__file__).parent.parent / "migrations")


async def migrate(url: str, sources: Sequence[MigrationSource]) -> list[str]:
    """Brings every owner's tables to their newest revision, in order; returns what was applied.

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


async def applied_revisions(url: str, sources: Iterable[MigrationSource]) -> dict[str, str | None]:
    """The revision at which each owner's tables stand; None where there are none.

    Raises `DatabaseUnavailable`.
    """
    # Not the service's own connections: those know the tables as they are before the migration.
    database = Database(url, pool_size=1)
    await database.connect()
    try:
        async with database.read() as tx:
            return {source.owner: await _applied(tx, source) for source in sources}
    finally:
        await database.disconnect()


async def _is_newest(url: str, sources: Sequence[MigrationSource]) -> bool:
    newest = {source.owner: source.newest() for source in sources}
    if url.startswith("sqlite") and await asyncio.to_thread(
        _file_stands_at, sqlite_path(url), [(s.version_table, newest[s.owner]) for s in sources]
    ):
        return True
    applied = await applied_revisions(url, sources)
    return None not in newest.values() and applied == newest


def _file_stands_at(path: Path, revisions: Sequence[tuple[str, str | None]]) -> bool:
    """Whether a file stands at these revisions for certain, by table of versions.

    Nearly every start finds it so, and one plain connection is enough to see it: a `Database` opens seven,
    with a thread for most of them. Whatever else is found here, `Database` says what it means.
    """
    with suppress(sqlite3.Error, OSError):
        if path.stat().st_size:
            with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
                return all(
                    connection.execute(f"SELECT version_num FROM {table}").fetchall() == [(one,)]
                    for table, one in revisions
                )
    return False


async def _applied(tx: Tx, source: MigrationSource) -> str | None:
    table = source.version_table
    known = await tx.fetch_val(
        "SELECT to_regclass(:name)::text"
        if tx.dialect == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'table' AND name = :name",
        {"name": table},
    )
    if known is None:
        return None
    found: str | None = await tx.fetch_val(f"SELECT version_num FROM {table}")
    return found
