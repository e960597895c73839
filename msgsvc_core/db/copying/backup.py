"""Backups: the whole database in one SQLite file, whichever database it is from, to be restored into either.

The file is a database of the service itself, with a label: who needs one row of last night can look for it
with `sqlite3`.
"""

import errno
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from msgsvc_core.db.copying.contract import Copied, Fingerprint, OnProgress, Scope
from msgsvc_core.db.copying.copier import (
    LABEL,
    check_revisions,
    copy_from,
    fingerprint,
    opened,
)
from msgsvc_core.db.copying.sqlite_end import SQLiteEnd
from msgsvc_core.db.copying.tables import read_tables
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.errors import CopyRefused
from msgsvc_core.db.revisions import MigrationSource

#: Version of the file's format. A release restores only the one that it writes.
FORMAT = 1

#: Errors of the operating system, and primary codes of SQLite, of a file that can't be written.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)
_UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)

#: Files that SQLite keeps beside one that is in use.
_BESIDE = ("", "-wal", "-shm", "-journal")


async def backup(
    url: str,
    path: Path,
    scope: Scope,
    on_progress: OnProgress,
    *,
    release: str,
    created_at: str,
) -> Copied:
    """Writes a consistent backup while services may be running; the file is there once it is complete.

    `release` is this one's version, `created_at` the time. Raises `CopyRefused`, `DatabaseUnavailable`.
    """
    _check_place(path)
    await check_revisions(url, scope.migrations)
    part = path.with_name(f"{path.name}.partial")
    try:
        _remove(part)
        # It has all that the database has, so it is as private.
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if url.startswith("sqlite"):
            copied = await _backup_file(sqlite_path(url), part, scope, on_progress)
        else:
            async with opened(url, scope, is_source=True) as source:
                copied = await copy_from(
                    source, f"sqlite:///{part}", scope, on_progress, in_use=True
                )
        _finish(
            part,
            path,
            {
                "format": FORMAT,
                "release": release,
                "created_at": created_at,
                "revisions": {each.owner: each.newest() for each in scope.migrations},
                "tables": {name: asdict(each) for name, each in copied.tables.items()},
            },
        )
    except (OSError, sqlite3.Error, DBAPIError) as error:
        if not (reason := _why_not_written(error)):
            raise
        raise CopyRefused(
            f"{path} can't be written: {reason}. Free space on its disk, or name a file on another one"
        ) from error
    finally:
        with suppress(OSError):
            _remove(part)
    return copied


async def restore(path: Path, url: str, scope: Scope, on_progress: OnProgress) -> Copied:
    """Fills an empty database from a backup, or continues to. Raises `CopyRefused`, `DatabaseUnavailable`."""
    label = _read_label(path)
    _check_label(path, label, scope.migrations)
    source = SQLiteEnd.open_to_read(path)
    try:
        copied = await copy_from(
            source, url, scope, on_progress, name=f"the backup of {label['created_at']}"
        )
    finally:
        await source.close()
    expected = {name: Fingerprint(**each) for name, each in label["tables"].items()}
    if copied.tables != expected:
        raise CopyRefused(
            f"{path} is not as it was written: the file is damaged, or was changed. Don't use what was"
            " restored from it"
        )
    return copied


async def _backup_file(database: Path, part: Path, scope: Scope, on_progress: OnProgress) -> Copied:
    """SQLite writes the copy itself, from one read transaction: others go on writing meanwhile."""
    on_progress("copying the file", 0, 1)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", (str(part),))
    tables = await read_tables(f"sqlite:///{part}", scope.left_out)
    end = SQLiteEnd.open_to_read(part)
    found: dict[str, Fingerprint] = {}
    try:
        for number, (name, table) in enumerate(tables.items(), start=1):
            if name not in scope.version_tables:
                on_progress(f"checksum of {name}", number, len(tables))
                found[name] = await fingerprint(end, table, lambda _rows: None)
    finally:
        await end.close()
    return Copied(found)


def _why_not_written(error: Exception) -> str:
    """The reason if the file can't be written; empty for what may be the fault of the source."""
    cause: Any = getattr(error, "orig", error)
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in _UNWRITABLE:
        return str(cause)
    return cause.strerror or "" if getattr(cause, "errno", None) in _NO_ROOM else ""


def _check_place(path: Path) -> None:
    if path.exists():
        raise CopyRefused(f"{path} exists: name another file, or remove it")
    if not path.parent.is_dir():
        raise CopyRefused(f"there is no folder {path.parent.absolute()}: make it first")


def _finish(part: Path, path: Path, label: dict[str, Any]) -> None:
    """Adds the label, and gives the file its name once it is on the disk."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"CREATE TABLE {LABEL} (label TEXT PRIMARY KEY)")
        connection.execute(f"INSERT INTO {LABEL} VALUES (?)", (json.dumps(label),))
    part.rename(path)
    for place in (path, path.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read_label(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise CopyRefused(f"{path}: no such file")
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            [(label,)] = connection.execute(f"SELECT label FROM {LABEL}")
    except (sqlite3.Error, ValueError) as error:
        raise CopyRefused(
            f"{path} is no backup that `msgsvc backup` has written ({error})"
        ) from error
    read: dict[str, Any] = json.loads(label)
    return read


def _check_label(path: Path, label: dict[str, Any], migrations: Sequence[MigrationSource]) -> None:
    by = f"release {label['release']}"
    if label["format"] != FORMAT:
        raise CopyRefused(
            f"{path} has format {label['format']}, and this release reads format {FORMAT}: restore it with"
            f" {by}, which wrote it, and upgrade afterwards"
        )
    revisions = {each.owner: each.newest() for each in migrations}
    if missing := sorted(label["revisions"].keys() - revisions.keys()):
        raise CopyRefused(f"{path} has data of {', '.join(missing)}: add them to `plugins`")
    if absent := sorted(revisions.keys() - label["revisions"].keys()):
        raise CopyRefused(
            f"{path} has nothing of {', '.join(absent)}: restore it without them in `plugins`, and add them"
            " afterwards"
        )
    if other := sorted(name for name in revisions if revisions[name] != label["revisions"][name]):
        raise CopyRefused(
            f"{path} has other revisions of {', '.join(other)} than this release: restore it with {by},"
            " which wrote it, and upgrade afterwards"
        )


def _remove(part: Path) -> None:
    for suffix in _BESIDE:
        part.with_name(part.name + suffix).unlink(missing_ok=True)
