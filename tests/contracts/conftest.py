"""A database of each kind."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.db import CORE_MIGRATIONS, Database
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.contracts.things import TABLES


@pytest.fixture
async def url(backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[str]:
    address = await backend.empty()
    yield address
    await backend.give_back(address)


@pytest.fixture
async def core_url(backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[str]:
    """A database with the core's tables, for tests that migrate others: those of the core take half a
    second."""
    address = await backend.fresh([CORE_MIGRATIONS])
    yield address
    database = Database(address)
    await database.connect()
    async with database.transaction() as tx:
        rows = await tx.fetch_all(
            "SELECT name AS name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            if tx.dialect == "sqlite"
            else "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
        )
        for row in rows:
            if not row["name"].startswith("core_"):
                await tx.execute(f"DROP TABLE {row['name']}")
    await database.disconnect()
    await backend.give_back(address)


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    """A database with two tables and, on PostgreSQL, a pool of two."""
    database = Database(url, pool_size=2)
    await database.connect()
    async with database.transaction() as tx:
        for table in TABLES:
            await tx.execute(table)
    yield database
    await database.disconnect()
