"""Copies every table of one database to another, and compares both.

What is done is recorded in the target, in the table `msgsvc_copy`, in the transaction of the rows themselves:
a copy that was interrupted at any point continues behind its last row. The table is dropped when both
databases were compared, and until then no service starts on the target.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, asynccontextmanager
from functools import partial

from msgsvc_core.db.copying.contract import (
    Copied,
    End,
    Fingerprint,
    OnProgress,
    Scope,
    Table,
    Values,
)
from msgsvc_core.db.copying.sqlite_end import SQLiteEnd
from msgsvc_core.db.copying.tables import read_tables
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.errors import CopyRefused
from msgsvc_core.db.revisions import MigrationSource, applied_revisions
from msgsvc_core.db.sqlite import create_file
from msgsvc_core.db.unfinished import RECORD
from msgsvc_core.db.upgrading import migrate

#: What a backup's file says about itself; it is no part of the database.
LABEL = "msgsvc_backup"

#: Checksums of rows are added modulo this, so that their order doesn't matter.
_MODULUS = 1 << 128


async def copy(
    source_url: str,
    target_url: str,
    scope: Scope,
    on_progress: OnProgress,
) -> Copied:
    """Copies everything to an empty database, or continues an interrupted copy.

    Raises `CopyRefused` while a service uses either database, if the target has data of its own, or if both
    are not the same in the end; `DatabaseUnavailable`.
    """
    if source_url == target_url:
        raise CopyRefused("the target is the database itself: name another one")
    await check_revisions(source_url, scope.migrations)
    async with opened(source_url, scope, is_source=True) as source:
        return await copy_from(source, target_url, scope, on_progress)


async def copy_from(
    source: End,
    target_url: str,
    scope: Scope,
    on_progress: OnProgress,
    *,
    name: str | None = None,
    in_use: bool = False,
) -> Copied:
    """The same, from an open source. `name` identifies it when a copy is continued. The source may be
    `in_use`: what is written meanwhile is not copied."""
    if not in_use:
        await source.check_alone()
    async with opened(target_url, scope, is_source=False) as target:
        await target.check_alone()
        await _check_empty(target, scope.version_tables)
    await migrate(target_url, scope.migrations, has_sessions=scope.has_sessions)
    found = await read_tables(target_url, scope.left_out)
    is_continued = found.pop(RECORD, None) is not None
    _check_names(await source.table_names(), set(found))
    tables = [table for table in found.values() if table.name not in scope.version_tables]
    async with opened(target_url, scope, is_source=False) as target:
        done = await _begin(target, name or source.name, tables, is_continued=is_continued)
        steps = await _Steps.of(source, tables, on_progress)
        for table in tables:
            await _copy_table(source, target, table, done.get(table.name), steps)
        await target.finish(tables)
        copied = Copied(
            {table.name: await _compare(source, target, table, steps) for table in tables}
        )
        if not in_use:
            # On PostgreSQL nothing keeps a service from starting meanwhile.
            await source.check_alone()
        await target.execute(f"DROP TABLE {RECORD}")
        return copied


async def check_revisions(url: str, migrations: Sequence[MigrationSource]) -> None:
    """Raises `CopyRefused` unless the database is at the revisions of this release and its plugins."""
    if url.startswith("sqlite") and not sqlite_path(url).exists():
        raise CopyRefused(f"there is no database {sqlite_path(url)}")
    applied = await applied_revisions(url, migrations)
    behind = [each.owner for each in migrations if applied[each.owner] != each.newest()]
    if behind:
        raise CopyRefused(
            f"the database is not at the revisions of this release ({', '.join(behind)}): run"
            " `msgsvc migrate` first, or use the release that it belongs to"
        )


@asynccontextmanager
async def opened(url: str, scope: Scope, *, is_source: bool) -> AsyncIterator[End]:
    """A connection for a copy; a source on PostgreSQL is a snapshot of now."""
    if url.startswith("sqlite"):
        if not is_source:
            create_file(sqlite_path(url))
        end: End = SQLiteEnd.open_alone(sqlite_path(url))
    else:
        from msgsvc_core.db.copying.postgres_end import PostgresEnd  # noqa: PLC0415 - asyncpg, 3 MiB

        end = await PostgresEnd.open(url, is_source=is_source, has_sessions=scope.has_sessions)
    try:
        yield end
    finally:
        await end.close()


async def fingerprint(end: End, table: Table, on_rows: Callable[[int], None]) -> Fingerprint:
    """Reads the whole table; `on_rows` is called with the size of each batch."""
    count = total = 0
    async with aclosing(end.rows(table)) as batches:
        async for batch in batches:
            count += len(batch)
            for row in batch:
                digest = hashlib.blake2b(repr(row).encode(), digest_size=16).digest()
                total += int.from_bytes(digest, "big")
            on_rows(len(batch))
    return Fingerprint(count, f"{total % _MODULUS:032x}")


class _Steps:
    """Progress: each row is copied once and compared twice."""

    def __init__(self, total: int, on_progress: OnProgress) -> None:
        self._total = total
        self._done = 0
        self._on_progress = on_progress

    @classmethod
    async def of(cls, source: End, tables: Sequence[Table], on_progress: OnProgress) -> "_Steps":
        rows = 0
        for table in tables:
            rows += await _count(source, table)
        return cls(3 * rows, on_progress)

    def add(self, what: str, rows: int) -> None:
        self._done += rows
        self._on_progress(what, self._done, self._total)


async def _count(end: End, table: Table) -> int:
    [(count,)] = await end.execute(f"SELECT count(*) FROM {table.name}")
    return int(count)


async def _check_empty(target: End, versions: Collection[str]) -> None:
    names = await target.table_names()
    if RECORD in names:
        return
    for name in sorted(names - set(versions)):
        if await target.execute(f'SELECT 1 FROM "{name}" LIMIT 1'):
            raise CopyRefused(
                f"{target.name} is not empty (there are rows in {name}): create a new, empty database, or"
                " drop this one and create it again"
            )


def _check_names(source: AbstractSet[str], target: AbstractSet[str]) -> None:
    lost, missing = sorted(source - target - {LABEL}), sorted(target - source)
    if lost:
        raise CopyRefused(
            f"nothing that is loaded owns {', '.join(lost)}: add the plugins that do to `plugins`, or drop"
            " these tables if nobody needs them any more"
        )
    if missing:
        raise CopyRefused(
            f"the source lacks {', '.join(missing)}, and the target has them: is the target a database of"
            " msgsvc alone, and has the source been migrated?"
        )


async def _begin(
    target: End, source_name: str, tables: Sequence[Table], *, is_continued: bool
) -> dict[str, Values]:
    """Marks the target as a copy; returns the last keys of what has been copied, by table."""
    if is_continued:
        rows = await target.execute(f"SELECT name, last_key FROM {RECORD}")
        found = {row[0]: row[1] for row in rows}
        if found.get("") != source_name:
            raise CopyRefused(
                f"{target.name} is an interrupted copy of {found.get('')}: continue that one, or drop the"
                " database and create it again"
            )
        return {name: tuple(json.loads(key)) for name, key in found.items() if name}
    async with target.transaction():
        await target.execute(
            f"CREATE TABLE {RECORD} (name TEXT PRIMARY KEY, last_key TEXT NOT NULL)"
        )
        await target.execute(f"INSERT INTO {RECORD} VALUES ($1, $2)", "", source_name)
        # What migrations put into a new database is in the source too.
        for table in reversed(tables):
            await target.execute(f"DELETE FROM {table.name}")
    return {}


async def _copy_table(
    source: End, target: End, table: Table, after: Values | None, steps: _Steps
) -> None:
    what = f"copying {table.name}"
    if after is not None:
        steps.add(what, await _count(target, table))
    # Closed here if the target fails: its end must not run beside that of the connection.
    async with aclosing(source.rows(table, after)) as batches:
        async for batch in batches:
            key = json.dumps(table.key_of(batch[-1]))
            async with target.transaction():
                await target.insert(table, batch)
                await target.execute(
                    f"INSERT INTO {RECORD} VALUES ($1, $2)"
                    " ON CONFLICT (name) DO UPDATE SET last_key = excluded.last_key",
                    table.name,
                    key,
                )
            steps.add(what, len(batch))


async def _compare(source: End, target: End, table: Table, steps: _Steps) -> Fingerprint:
    on_rows = partial(steps.add, f"comparing {table.name}")
    original = await fingerprint(source, table, on_rows)
    copied = await fingerprint(target, table, on_rows)
    if original != copied:
        raise CopyRefused(
            f"{table.name} has {original.rows} rows, the copy {copied.rows}, or other values: the"
            " source has changed since the copy was begun. Drop the target, create it again and copy anew,"
            " with the service stopped all the time"
        )
    return original
