"""The revision of every owner's tables.

Every owner, the core or a plugin, has its own Alembic scripts and version table
(docs/decisions/0004-migrations-per-owner.md). They are read without Alembic.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from msgsvc_core.db.database import Database
from msgsvc_core.db.tx import Tx

#: A script's assignments of its own and the previous revision.
_NAMED = re.compile(
    r"""^(revision|down_revision)\b[^=\n]*=\s*(?:None|["']([^"'\n]+)["'])\s*(?:#.*)?$""",
    re.MULTILINE,
)


class DatabaseTooNew(Exception):
    """A newer release has migrated the database; this one must not use it."""


@dataclass(frozen=True, slots=True)
class MigrationSource:
    """`owner` is the prefix of the owner's tables; `folder` contains its scripts, from `0001_*.py` on."""

    owner: str
    folder: Path

    @property
    def version_table(self) -> str:
        return f"{self.owner}_migrations"

    def newest(self) -> str | None:
        """The latest revision; None if it can't be determined reliably by reading the scripts."""
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
    """The revision of each owner's tables; None if it has none.

    Raises `DatabaseUnavailable`.
    """
    # Not the service's own connections: those cache statements for the tables before the migration.
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
