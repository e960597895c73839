"""A database of each kind."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.db import Database
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.contracts.things import TABLES


@pytest.fixture
async def url(backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[str]:
    address = await backend.empty()
    yield address
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
