"""PostgreSQL behind PgBouncer, which hands out its connections for a transaction each."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from msgsvc_core.cli.live_checks import check_database
from msgsvc_core.config.settings import Settings
from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db import CORE_MIGRATIONS, Database, DatabaseUnavailable, WriteBatch, migrate
from msgsvc_core.db.copying import Scope, backup
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.services import SECRET_KEY
from tests.contracts.pgbouncer import pgbouncer, through
from tests.contracts.things import TABLES

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)

#: Rounds in which each of several connections prepares the same names on each of two of the server's.
ROUNDS = 20


@pytest.fixture
async def pooler(tmp_path: Path) -> AsyncIterator[int]:
    async with pgbouncer(tmp_path, "transaction") as port:
        yield port


async def test_transactions_batches_and_reads_work(url: str, pooler: int) -> None:
    first = Database(through(url, pooler), pool_size=4)
    second = Database(through(url, pooler), pool_size=4)
    for db in (first, second):
        await db.connect()
    async with first.transaction() as tx:
        for table in TABLES:
            await tx.execute(table)

    async def use(db: Database, number: int) -> None:
        async with db.transaction() as tx:
            await tx.insert("things", {"id": number, "name": f"thing {number}", "number": number})
            await tx.fetch_all("SELECT id FROM things WHERE number = :number", {"number": number})
        batch = WriteBatch()
        batch.insert("things", {"id": number + 1, "name": "batch", "number": number})
        await db.write(batch)
        async with db.read() as tx:
            await tx.fetch_all("SELECT name FROM things WHERE id = :id", {"id": number})

    for each in range(ROUNDS):
        await asyncio.gather(
            *(use(db, each * 100 + 10 * place) for place, db in enumerate((first, second) * 4))
        )
    async with first.read() as tx:
        count = await tx.fetch_val("SELECT count(*) FROM things")
    for db in (first, second):
        await db.disconnect()

    assert count == ROUNDS * 16
    assert first.is_pooled


async def test_the_service_runs_and_hears_other_processes_over_the_direct_address(
    backend: PostgresDatabases, pooler: int
) -> None:
    blank = Service(Settings(secret_keys=(SECRET_KEY,), database_url="postgresql://unused/unused"))
    url = await backend.fresh(blank.migrations)
    settings = Settings(
        secret_keys=(SECRET_KEY,), database_url=through(url, pooler), database_direct_url=url
    )
    service = Service(settings)
    heard: list[str] = []
    other = Database(through(url, pooler), pool_size=2)
    await other.connect()

    async with service:
        service.db.listen("things", heard.append)

        async def is_heard() -> bool:
            async with other.transaction() as tx:
                tx.notify("things", "news")
            return bool(heard)

        await until(is_heard)
        async with other.read() as tx:
            names = await tx.fetch_all(
                "SELECT application_name AS name FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
    await other.disconnect()

    assert [row["name"].startswith("msgsvc ") for row in names] == [True]


async def test_migrations_are_refused_without_the_direct_address(url: str, pooler: int) -> None:
    pooled = through(url, pooler)

    with pytest.raises(DatabaseUnavailable, match="set database_direct_url"):
        await migrate(pooled, [CORE_MIGRATIONS])

    assert await migrate(url, [CORE_MIGRATIONS])


async def test_a_pooler_that_keeps_sessions_needs_nothing_else(url: str, tmp_path: Path) -> None:
    async with pgbouncer(tmp_path, "session", size=8) as port:
        pooled = through(url, port)
        await migrate(pooled, [CORE_MIGRATIONS], has_sessions=True)
        db = Database(pooled, pool_size=2, direct_url=pooled)
        await db.connect()
        async with db.session() as raw:
            found = await raw.fetchval("SELECT 1")
        await db.disconnect()
        scope = Scope([CORE_MIGRATIONS], CORE_NOT_COPIED, has_sessions=True)
        written = await backup(
            pooled, tmp_path / "all.backup", scope, lambda *_: None, release="1", created_at="now"
        )

    assert found == 1
    assert not db.is_pooled
    assert written.tables


async def test_a_backup_over_a_pooler_is_refused_with_the_remedy(
    backend: PostgresDatabases, pooler: int, tmp_path: Path
) -> None:
    url = await backend.fresh([CORE_MIGRATIONS])
    scope = Scope([CORE_MIGRATIONS], CORE_NOT_COPIED)

    with pytest.raises(DatabaseUnavailable, match=re.escape("set database_direct_url")):
        await backup(
            through(url, pooler),
            tmp_path / "all.backup",
            scope,
            lambda *_: None,
            release="1",
            created_at="now",
        )

    await backend.give_back(url)


async def test_doctor_names_a_pooler_without_the_direct_address(
    backend: PostgresDatabases, pooler: int
) -> None:
    blank = Service(Settings(secret_keys=(SECRET_KEY,), database_url="postgresql://unused/unused"))
    url = await backend.fresh(blank.migrations)

    async def subjects(**settings: str) -> list[str]:
        service = Service(
            Settings(secret_keys=(SECRET_KEY,), database_url=through(url, pooler), **settings)
        )
        try:
            return [
                finding.subject
                async for finding in check_database(service)
                if finding.level == "warning"
            ]
        finally:
            await service.db.disconnect()

    assert "pooler" in await subjects()
    assert "pooler" not in await subjects(database_direct_url=url)
