"""PostgreSQL is asked to look at tables that have grown, and at no others."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.db import Database
from msgsvc_core.db.postgres_statistics import SMALL_ROWS, analyze_grown
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.fixtures import ServiceFactory

on_postgresql = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)

#: Rows of some 100 bytes: more pages than are small.
MANY = 2000


@pytest.fixture
async def db(backend: PostgresDatabases) -> AsyncIterator[Database]:
    url = await backend.empty()
    database = Database(url, pool_size=2)
    await database.connect()
    async with database.transaction() as tx:
        # Only we look at them.
        for name in ("shop_orders", "shopping"):
            await tx.execute(
                f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, note TEXT) WITH (autovacuum_enabled = off)"
            )
            await tx.execute(
                f"CREATE TABLE {name}_lines (id INTEGER PRIMARY KEY, note TEXT,"
                f" of INTEGER REFERENCES {name}) WITH (autovacuum_enabled = off)"
            )
    yield database
    await database.disconnect()
    await backend.give_back(url)


async def add(db: Database, table: str, first: int, count: int) -> None:
    async with db.transaction() as tx:
        await tx.insert_many(
            table, [{"id": number, "note": "x" * 100} for number in range(first, first + count)]
        )


async def analyzed(db: Database) -> list[str]:
    async with db.read() as tx:
        return await analyze_grown(tx, ["shop"])


async def known_rows(db: Database, table: str) -> float:
    async with db.read() as tx:
        found: float = await tx.fetch_val(
            "SELECT reltuples FROM pg_class WHERE oid = CAST(CAST(:name AS text) AS regclass)",
            {"name": table},
        )
        return found


@on_postgresql
async def test_a_table_that_has_grown_is_analyzed_once(db: Database) -> None:
    await add(db, "shop_orders", 0, MANY)
    assert await analyzed(db) == ["shop_orders"]
    assert await known_rows(db, "shop_orders") == MANY
    assert await analyzed(db) == []
    await add(db, "shop_orders", MANY, MANY // 2)
    assert await analyzed(db) == [], "it has not doubled"
    await add(db, "shop_orders", 2 * MANY, MANY)
    assert await analyzed(db) == ["shop_orders"]
    assert await known_rows(db, "shop_orders") == 2.5 * MANY


@on_postgresql
async def test_a_small_table_is_left_alone(db: Database) -> None:
    await add(db, "shop_orders", 0, SMALL_ROWS)
    assert await analyzed(db) == []


@on_postgresql
async def test_a_table_that_no_foreign_key_points_at_is_left_alone(db: Database) -> None:
    await add(db, "shop_orders_lines", 0, MANY)
    assert await analyzed(db) == []


@on_postgresql
async def test_a_table_of_somebody_else_is_left_alone(db: Database) -> None:
    await add(db, "shopping", 0, MANY)
    assert await analyzed(db) == []


@on_postgresql
async def test_rows_that_were_not_committed_at_the_first_look_are_counted_later(
    db: Database,
) -> None:
    async with db.transaction() as tx:
        await tx.insert_many(
            "shop_orders", [{"id": number, "note": "x" * 100} for number in range(MANY)]
        )
        assert await analyzed(db) == ["shop_orders"], "its file has grown"
        assert await known_rows(db, "shop_orders") == 0
        # What a connection did is told when it has been idle for a while, or at once if it is asked to.
        await tx.execute("SELECT pg_stat_force_next_flush()")

    async def counted() -> bool:
        return "shop_orders" in await analyzed(db)

    await until(counted)
    assert await known_rows(db, "shop_orders") == MANY


@on_postgresql
async def test_a_running_service_looks_by_itself(make_service: ServiceFactory) -> None:
    service = await make_service(start=False)
    # Before it runs: of rows that are committed while PostgreSQL looks, it may never hear.
    await service.open_database()
    project = await service.projects.create("Shop")
    rows = [
        {
            "project_id": project.project_id,
            "tag_id": f"tag-{number:06}",
            "name": f"tag-{number:06}",
            "created_at_ms": number,
        }
        for number in range(MANY)
    ]
    async with service.db.transaction() as tx:
        await tx.execute("ALTER TABLE core_tags SET (autovacuum_enabled = off)")
        await tx.insert_many("core_tags", rows)
    await service.db.disconnect()

    async with service:

        async def known() -> bool:
            return await known_rows(service.db, "core_tags") >= MANY

        await until(known)
