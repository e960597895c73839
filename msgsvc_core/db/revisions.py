"""At which revision every owner's tables stand.

Every owner, the core or a plugin, has Alembic scripts and a version table of its own
(docs/decisions/0004-migrations-per-owner.md). What stands where is found out by reading, without Alembic.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from msgsvc_core.db.database import Database
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
