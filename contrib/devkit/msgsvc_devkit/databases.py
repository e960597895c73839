"""New databases for tests: migrated once for each set of plugins, then copied."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from msgsvc_core.db import Database, MigrationSource
from msgsvc_core.kernel.ids import new_token
from msgsvc_devkit.idle_pools import IdlePools
from msgsvc_devkit.images import shared_images
from msgsvc_devkit.memory import MEMORY_URL, MemoryBackend, MemoryDatabase
from msgsvc_devkit.rows import empty_tables, keep_rows, restore_rows

POSTGRES_URL_VARIABLE = "MSGSVC_TEST_POSTGRES_URL"
DEFAULT_POSTGRES_URL = "postgresql://postgres@127.0.0.1:5432/postgres"


def postgres_url() -> str:
    """The URL of the server on which test databases are created."""
    return os.environ.get(POSTGRES_URL_VARIABLE) or DEFAULT_POSTGRES_URL


class SQLiteDatabases:
    """Files in a folder, and databases in memory."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._images = shared_images()
        self._in_memory: dict[str, MemoryDatabase] = {}
        #: What `keep` saved of databases in memory, by URL.
        self._kept_images: dict[str, bytes] = {}

    async def fresh(self, sources: Sequence[MigrationSource]) -> str:
        """The URL of a new, migrated database."""
        copy = self._new_path()
        await self._images.copy_to(copy, sources)
        return f"sqlite:///{copy}"

    async def fresh_in_memory(self, sources: Sequence[MigrationSource]) -> str:
        """The same without a file: `connect_to` gives what a service uses instead of the URL."""
        return self._open_in_memory(await self._images.of(sources))

    def connect_to(self, url: str) -> Database | None:
        """A connection to the database in memory at that URL; None if there is none."""
        found = self._in_memory.get(url)
        return None if found is None else Database(url, in_memory=MemoryBackend(found))

    async def empty(self) -> str:
        """The URL of a new database without any table."""
        return f"sqlite:///{self._new_path()}"

    async def give_back(self, url: str) -> None:
        """Drops a database in memory. Files stay: a copy costs less than cleaning."""
        if (database := self._in_memory.pop(url, None)) is not None:
            database.close()

    async def keep(self, url: str) -> None:
        """Saves the content of a database that is not in use, for `restored`."""
        if (database := self._in_memory.get(url)) is not None:
            self._kept_images[url] = database.image()
            return
        shutil.copyfile(_path(url), _kept(url))

    async def restored(self, url: str) -> str:
        """The URL of a database with the content saved from that one. Only one test at a time uses it."""
        if (image := self._kept_images.get(url)) is not None:
            return self._open_in_memory(image)
        copy = self._new_path()
        shutil.copyfile(_kept(url), copy)
        return f"sqlite:///{copy}"

    async def drop_all(self) -> None:
        """Nothing to do: the folder belongs to the test runner."""

    def _new_path(self) -> Path:
        return self._folder / f"{new_token()}.db"

    def _open_in_memory(self, image: bytes) -> str:
        url = f"{MEMORY_URL}{new_token()}"
        self._in_memory[url] = MemoryDatabase(image)
        return url


class PostgresDatabases:
    """Databases on a server, emptied and reused, and dropped at the end.

    Creating one takes a tenth of a second, dropping one as long; emptying one takes milliseconds.
    """

    name = "postgresql"

    def __init__(self, url: str) -> None:
        self._url = url
        self._templates: dict[tuple[str, ...], str] = {}
        self._made: list[str] = []
        self._free: dict[tuple[str, ...], list[str]] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        #: Connections of earlier services.
        self.idle = IdlePools()

    async def fresh(
        self, sources: Sequence[MigrationSource], *, with_idle_connections: bool = False
    ) -> str:
        """The URL of a new, migrated database. Nobody is connected to it, except the connections in `idle`
        if they are asked for."""
        key = tuple(source.owner for source in sources)
        if key not in self._templates:
            template = await self._create()
            await shared_images().migrate_postgres(self._url_of(template), sources)
            self._templates[key] = template
        free = self._free.get(key, [])
        if free and (with_idle_connections or await self.idle.drop(free[-1])):
            return free.pop()
        url = self._url_of(await self._create(self._templates[key]))
        self._owners[url] = key
        return url

    async def empty(self) -> str:
        """The URL of a database without any table."""
        if self._free.get(()):
            return self._free[()].pop()
        url = self._url_of(await self._create())
        self._owners[url] = ()
        return url

    async def give_back(self, url: str) -> None:
        """Empties a database from `fresh` or `empty`, for reuse."""
        if url not in self._owners:
            await self.idle.drop(url)
            return
        clean = empty_tables if self._owners[url] else _drop_tables
        if not await self.idle.execute_on(url, clean):
            await self.idle.drop(url)
            connection = await asyncpg.connect(url)
            try:
                await clean(connection)
            finally:
                await connection.close()
        free = self._free.setdefault(self._owners[url], [])
        # Given back twice, it would be two tests' at once.
        if url not in free:
            free.append(url)

    async def keep(self, url: str) -> None:
        """As in `SQLiteDatabases`; the database is no longer reused by others."""
        self._owners.pop(url, None)
        connection = await asyncpg.connect(url)
        try:
            await keep_rows(connection)
        finally:
            await connection.close()

    async def restored(self, url: str) -> str:
        """As in `SQLiteDatabases`."""
        connection = await asyncpg.connect(url)
        try:
            await empty_tables(connection)
            await restore_rows(connection)
        finally:
            await connection.close()
        return url

    async def drop_all(self) -> None:
        connection = await asyncpg.connect(self._url)
        try:
            for name in self._made:
                await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        finally:
            await connection.close()
        self._made.clear()

    async def _create(self, template: str = "template0") -> str:
        name = f"msgsvc_test_{new_token().lower()}"
        connection = await asyncpg.connect(self._url)
        try:
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
            # Tests don't need durability across power failures.
            await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        finally:
            await connection.close()
        self._made.append(name)
        return name

    def _url_of(self, name: str) -> str:
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))


async def _drop_tables(connection: asyncpg.Connection) -> None:
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")


def _kept(url: str) -> str:
    return f"{_path(url)}.kept"


def postgres_answers(url: str) -> bool:
    """Whether a server is reachable at the URL."""

    async def connect() -> bool:
        with suppress(OSError, asyncpg.PostgresError, TimeoutError):
            connection = await asyncpg.connect(url, timeout=3)
            await connection.close()
            return True
        return False

    return asyncio.run(connect())
