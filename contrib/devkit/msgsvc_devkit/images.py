"""Migrated databases to copy for tests. The migrations of each owner are applied once for all processes."""

import asyncio
import hashlib
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import asyncpg

import msgsvc_core.db
from msgsvc_core.db import MigrationSource, migrate

#: Offsets in a database file's header of the two bytes that ask for a WAL, which memory can't have, and the
#: value that does not (https://www.sqlite.org/fileformat2.html#file_format_version_numbers).
_JOURNAL_BYTES = slice(18, 20)
_WITHOUT_WAL = b"\x01\x01"


class MigratedImages:
    """SQLite databases as bytes, and scripts of what each owner's migrations add to them and to PostgreSQL
    databases, kept in `folder` by the content of the migrations. The first owner is the core; the others know
    its tables only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._images: dict[tuple[MigrationSource, ...], bytes] = {}

    async def of(self, sources: Sequence[MigrationSource]) -> bytes:
        """A database with all migrations of these owners applied, and no rows."""
        key = tuple(sources)
        if key not in self._images:
            self._images[key] = await self._read(sources)
        return self._images[key]

    async def copy_to(self, path: Path, sources: Sequence[MigrationSource]) -> None:
        """Makes the file of a new database, readable only by its owner as the service makes it."""
        _write_new(path, await self.of(sources))

    async def migrate_postgres(self, url: str, sources: Sequence[MigrationSource]) -> None:
        """Brings an empty database up to date: by scripts that `pg_dump` wrote of earlier ones, in a fifth of
        the time, or by the migrations."""
        scripts: list[str] = []
        for number, source in enumerate(sources):
            path = self._folder / f"{fingerprint([*sources[:1], source])}.tables.sql"
            if path.exists():
                scripts.append(path.read_text("utf-8"))
                continue
            await _execute(url, scripts)
            scripts.clear()
            before = await _tables(url)
            await migrate(url, sources[: number + 1])
            # Of the core, the whole database.
            made = sorted(await _tables(url) - before) if number else []
            if (script := await asyncio.to_thread(dumped, url, *made)) is not None:
                self._keep(path, script.encode())
        await _execute(url, scripts)

    async def _read(self, sources: Sequence[MigrationSource]) -> bytes:
        path = self._folder / f"{fingerprint(sources)}.image"
        if not path.exists():
            self._keep(path, await self._made(sources))
        return path.read_bytes()

    async def _made(self, sources: Sequence[MigrationSource]) -> bytes:
        first, *others = sources
        if not others:
            return await self._migrated(sources)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.deserialize(await self.of([first]))
            for source in others:
                connection.executescript(await self._additions(first, source))
            return connection.serialize()

    async def _additions(self, first: MigrationSource, source: MigrationSource) -> str:
        """The script of what an owner's migrations add to a SQLite database of the first owner."""
        path = self._folder / f"{fingerprint([first, source])}.additions.sql"
        if not path.exists():
            before = {*_statements(await self.of([first]))}
            after = _statements(await self._migrated([first, source], [first]))
            frame = {"BEGIN TRANSACTION;", "COMMIT;"}
            script = [line for line in after if line not in before or line in frame]
            self._keep(path, "\n".join(script).encode())
        return path.read_text("utf-8")

    async def _migrated(
        self, sources: Sequence[MigrationSource], begun: Sequence[MigrationSource] = ()
    ) -> bytes:
        """A SQLite database after all migrations; those of `begun` are not run again."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            made = Path(folder) / "migrated.db"
            if begun:
                await self.copy_to(made, begun)
            await migrate(f"sqlite:///{made}", sources)
            return _image_of(made)

    def _keep(self, path: Path, content: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
            file.write(content)
        # At once whole, for the other processes that look for it.
        os.replace(file.name, path)


@cache
def shared_images() -> MigratedImages:
    """Those of all processes of this user, in the machine's folder for temporary files."""
    folder = Path(tempfile.gettempdir()) / f"msgsvc-migrated-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    return MigratedImages(folder)


def fingerprint(sources: Sequence[MigrationSource]) -> str:
    """Changes with any script of these owners, and with the code that applies them."""
    digest = hashlib.sha256()
    folders = {source.owner: source.folder for source in sources}
    for owner, folder in {"": Path(msgsvc_core.db.__file__).parent, **folders}.items():
        digest.update(f"{owner}\n".encode() + _digest(folder))
    return digest.hexdigest()[:32]


@cache
def _digest(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for script in sorted(folder.rglob("*.py")):
        digest.update(f"{script.name}\n".encode() + script.read_bytes())
    return digest.digest()


def dumped(url: str, *tables: str) -> str | None:
    """The script of a database, or of some of its tables; None without a `pg_dump` that reads it."""
    command = ["pg_dump", "--inserts", "--no-owner", *(f"--table={name}" for name in tables), url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    # Commands for psql are no SQL: it has restricted what a script may do with them since 2025.
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("\\"))


async def _execute(url: str, scripts: Sequence[str]) -> None:
    if not scripts:
        return
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("\n".join(scripts))
    finally:
        await connection.close()


async def _tables(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    finally:
        await connection.close()
    return {row["tablename"] for row in rows}


def _statements(image: bytes) -> list[str]:
    """The script of a SQLite database."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(image)
        return [*connection.iterdump()]


def _write_new(path: Path, content: bytes) -> None:
    path.touch(0o600, exist_ok=False)
    path.write_bytes(content)


def _image_of(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        image = bytearray(connection.serialize())
    image[_JOURNAL_BYTES] = _WITHOUT_WAL
    return bytes(image)
