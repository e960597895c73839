"""The migrations of every owner, and what a database has of them.

Every owner, the core or a plugin, has its own Alembic scripts and version table
(docs/decisions/0004-migrations-per-owner.md). They are read without Alembic.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from msgsvc_core.db.database import Database
from msgsvc_core.db.tx import Tx

#: Half of an upgrade: `expand` runs while processes of the earlier release serve, `contract` when they have
#: ended (docs/decisions/0004-migrations-per-owner.md).
Phase = Literal["expand", "contract"]

#: A script's assignments of its own and the previous revision, and of its phase.
_NAMED = re.compile(
    r"""^(revision|down_revision|phase)\b[^=\n]*=\s*(?:None|["']([^"'\n]+)["'])\s*(?:#.*)?$""",
    re.MULTILINE,
)

#: A script's assignment that it does not run in a transaction.
_ALONE = re.compile(r"^transactional\b[^=\n]*=\s*False\b", re.MULTILINE)

#: Name of the sessions that read and migrate a schema in `pg_stat_activity`.
MIGRATING_SESSION = "msgsvc-migrate"


class DatabaseTooNew(Exception):
    """A newer release has migrated the database; this one must not use it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One migration script."""

    owner: str
    revision: str
    phase: Phase
    #: False for a script that runs outside of a transaction on PostgreSQL.
    transactional: bool = True

    @property
    def name(self) -> str:
        return f"{self.owner}:{self.revision}"


@dataclass(frozen=True, slots=True)
class MigrationSource:
    """`owner` is the prefix of the owner's tables; `folder` contains its scripts, from `0001_*.py` on."""

    owner: str
    folder: Path

    @property
    def version_table(self) -> str:
        return f"{self.owner}_migrations"

    def read_steps(self) -> tuple[Step, ...] | None:
        """The steps, in order; None if they can't be determined reliably by reading the scripts."""
        followed_by: dict[str | None, Step] = {}
        scripts = list(self.folder.glob("[!_]*.py"))
        for script in scripts:
            state = script.stat()
            found = _read_step(self.owner, script, state.st_mtime_ns, state.st_size)
            if found is None:
                return None
            before, read = found
            followed_by[before] = read
        steps = list[Step]()
        while step := followed_by.pop(steps[-1].revision if steps else None, None):
            steps.append(step)
        return tuple(steps) if len(steps) == len(scripts) else None

    def newest(self) -> str | None:
        """The latest revision; None if it can't be determined reliably by reading the scripts."""
        steps = self.read_steps()
        return steps[-1].revision if steps else None


@lru_cache(maxsize=1024)
def _read_step(
    owner: str, script: Path, _mtime_ns: int, _size: int
) -> tuple[str | None, Step] | None:
    """The revision before a step, and the step; None if the script does not say plainly. Services of one
    process, and several parts of one start, ask for the same."""
    source = script.read_text("utf-8")
    named = _NAMED.findall(source)
    if sorted(which for which, _ in named) != ["down_revision", "phase", "revision"]:
        return None
    values = dict(named)
    if values["phase"] not in ("expand", "contract") or not values["revision"]:
        return None
    return values["down_revision"] or None, Step(
        owner,
        values["revision"],
        cast("Phase", values["phase"]),
        transactional=_ALONE.search(source) is None,
    )


CORE_MIGRATIONS = MigrationSource("core", Path(__file__).parent.parent / "migrations")


@dataclass(frozen=True, slots=True)
class AppliedStep:
    """A step as the database has recorded it. `release` applied it; empty if that was before releases were
    recorded."""

    revision: str
    phase: Phase
    release: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What a database has of one owner: its revision, None without tables, and the steps that led to it,
    which a database of an early release has not recorded."""

    revision: str | None
    history: tuple[AppliedStep, ...] = ()


def parse_history(stored: str | None) -> tuple[AppliedStep, ...]:
    return tuple(AppliedStep(*step) for step in json.loads(stored or "[]"))


def format_history(history: Iterable[AppliedStep]) -> str:
    """A JSON list of `[revision, phase, release]`, in the order in which the steps were applied."""
    return json.dumps([[step.revision, step.phase, step.release] for step in history])


async def applied_revisions(url: str, sources: Iterable[MigrationSource]) -> dict[str, str | None]:
    """The revision of each owner's tables; None if it has none.

    Raises `DatabaseUnavailable`.
    """
    return {owner: found.revision for owner, found in (await read_applied(url, sources)).items()}


async def read_applied(url: str, sources: Iterable[MigrationSource]) -> dict[str, Applied]:
    """What the database has of each owner. Raises `DatabaseUnavailable`."""
    # Not the service's own connections: those cache statements for the tables before the migration.
    database = Database(url, pool_size=1, session=MIGRATING_SESSION)
    await database.connect()
    try:
        async with database.read() as tx:
            return await applied_in(tx, sources)
    finally:
        await database.disconnect()


async def applied_in(tx: Tx, sources: Iterable[MigrationSource]) -> dict[str, Applied]:
    """As `read_applied`, over an open connection."""
    return {source.owner: await _applied(tx, source.version_table) for source in sources}


async def _applied(tx: Tx, table: str) -> Applied:
    if tx.dialect == "postgresql":
        if await tx.fetch_val("SELECT to_regclass(:name)::text", {"name": table}) is None:
            return Applied(None)
        # As JSON, since databases of early releases do not have the column.
        history = f"to_jsonb({table}) ->> 'history'"
    else:
        columns = await tx.fetch_all(
            "SELECT name AS name FROM pragma_table_info(:name)", {"name": table}
        )
        if not columns:
            return Applied(None)
        history = "history" if "history" in {row["name"] for row in columns} else "NULL"
    rows = await tx.fetch_all(f"SELECT version_num, {history} AS history FROM {table}")
    if not rows:
        return Applied(None)
    return Applied(rows[0]["version_num"], parse_history(rows[0]["history"]))
