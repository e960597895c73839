"""Migrations on both databases: from empty, again, together, and when a step fails."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import (
    CORE_MIGRATIONS,
    Database,
    DatabaseTooNew,
    MigrationSource,
    applied_revisions,
    migrate,
    pending_revisions,
)
from msgsvc_core.db.opening import MigrationsPending
from msgsvc_core.db.scripts import scripts_of
from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.services import SECRET_KEY
from tests.contracts.migration_scripts import COLUMN, REFERENCE, TABLE, Owner, Shop

Backend = SQLiteDatabases | PostgresDatabases


@pytest.fixture
async def url(backend: Backend) -> AsyncIterator[str]:
    address = await backend.empty()
    yield address
    await backend.give_back(address)


@pytest.fixture
def shop(tmp_path: Path) -> Owner:
    owner = Owner("shop", tmp_path / "shop")
    owner.write()
    return owner


@dataclass(frozen=True, slots=True)
class Migrated:
    """A database to which all migrations were applied in one go, from empty."""

    url: str
    sources: list[MigrationSource]
    applied: list[str]


@pytest.fixture(scope="module")
def migrated_by_backend() -> dict[str, Migrated]:
    return {}


@pytest.fixture
async def migrated(
    backend: Backend,
    migrated_by_backend: dict[str, Migrated],
    tmp_path_factory: pytest.TempPathFactory,
) -> Migrated:
    """With all installed plugins, and a shop whose second step needs a table of the core. Tests leave it as
    it is: applying 150 steps takes two seconds."""
    if backend.name not in migrated_by_backend:
        shop = Owner("shop", tmp_path_factory.mktemp("migrated") / "shop")
        shop.write()
        shop.write(REFERENCE)
        sources, url = [*installed_sources(), shop.source], await backend.empty()
        applied = await migrate(url, sources)
        migrated_by_backend[backend.name] = Migrated(url, sources, applied)
    return migrated_by_backend[backend.name]


def installed_sources() -> list[MigrationSource]:
    settings = {"secret_keys": (SECRET_KEY,), "channels": {}}
    plugins = tuple(
        name for name, point in available_plugins().items() if point.value.startswith("msgsvc_")
    )
    return Service(Settings.model_validate({**settings, "plugins": plugins})).migrations


async def tables(url: str) -> set[str]:
    database = Database(url)
    await database.connect()
    async with database.read() as tx:
        rows = await tx.fetch_all(
            "SELECT name AS name FROM sqlite_master WHERE type = 'table'"
            if tx.dialect == "sqlite"
            else "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
        )
    await database.disconnect()
    return {row["name"] for row in rows}


async def test_an_empty_database_gets_every_owners_tables(migrated: Migrated) -> None:
    owners = [source.owner for source in migrated.sources]

    assert {name.partition(":")[0] for name in migrated.applied} == set(owners)
    found = await tables(migrated.url)
    assert all(any(name.startswith(f"{owner}_") for name in found) for owner in owners)


async def test_every_table_begins_with_its_owners_name(migrated: Migrated) -> None:
    owners = tuple(f"{source.owner}_" for source in migrated.sources)
    assert all(name.startswith(owners) for name in await tables(migrated.url))


async def test_the_second_time_nothing_is_left_to_do(migrated: Migrated) -> None:
    assert await migrate(migrated.url, migrated.sources) == []


async def test_what_would_be_applied_is_told_before_and_nothing_after(
    url: str, shop: Owner
) -> None:
    shop.write()
    sources = [CORE_MIGRATIONS, shop.source]

    before = await pending_revisions(url, sources)
    await migrate(url, sources)
    after = await pending_revisions(url, sources)

    assert before[-2:] == ["shop:shop_0001", "shop:shop_0002"]
    assert after == []


async def test_asking_what_is_pending_changes_nothing(url: str, shop: Owner) -> None:
    await pending_revisions(url, [shop.source])

    assert await tables(url) == set()


async def test_a_new_step_is_applied_after_the_old_ones(url: str, shop: Owner) -> None:
    await migrate(url, [shop.source])
    shop.write()

    assert await migrate(url, [shop.source]) == ["shop:shop_0002"]
    assert {"shop_things_1", "shop_things_2"} <= await tables(url)


async def test_a_plugin_that_is_taken_out_leaves_its_tables_and_no_trouble(
    core_url: str, shop: Owner
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, shop.source])

    assert await migrate(core_url, [CORE_MIGRATIONS]) == []
    assert await pending_revisions(core_url, [CORE_MIGRATIONS]) == []
    assert "shop_things_1" in await tables(core_url)


async def test_a_plugin_that_comes_back_goes_on_where_it_was(core_url: str, shop: Owner) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, shop.source])
    await migrate(core_url, [CORE_MIGRATIONS])
    shop.write()

    assert await migrate(core_url, [CORE_MIGRATIONS, shop.source]) == ["shop:shop_0002"]


async def test_owners_may_use_the_same_revision_without_meeting(url: str, tmp_path: Path) -> None:
    first, second = Owner("a", tmp_path / "a"), Owner("b", tmp_path / "b")
    for owner in (first, second):
        owner.write()
        script = owner.source.folder / "0001_step.py"
        script.write_text(
            script.read_text().replace(
                f'revision = "{owner.source.owner}_0001"', 'revision = "0001"', 1
            )
        )

    applied = await migrate(url, [first.source, second.source])

    assert applied == ["a:0001", "b:0001"]


@pytest.mark.parametrize(
    "failure",
    ["raise ZeroDivisionError", 'op.execute("INSERT INTO shop_things_1 (id) VALUES (1), (1)")'],
    ids=["in the script", "in the database"],
)
async def test_a_step_that_fails_leaves_nothing_behind(url: str, shop: Owner, failure: str) -> None:
    shop.write(f"{TABLE}\n    {failure}")

    with pytest.raises(Exception, match=r"(?i)^$|unique"):
        await migrate(url, [shop.source])

    assert await tables(url) == set()
    assert await applied_revisions(url, [shop.source]) == {"shop": None}


async def test_a_step_that_fails_leaves_the_steps_of_the_time_before(url: str, shop: Owner) -> None:
    await migrate(url, [shop.source])
    shop.write(f"{TABLE}\n    raise ZeroDivisionError")
    with pytest.raises(ZeroDivisionError):
        await migrate(url, [shop.source])

    assert await tables(url) == {"shop_things_1", "shop_migrations"}
    assert await applied_revisions(url, [shop.source]) == {"shop": "shop_0001"}


async def test_a_mended_step_is_applied(url: str, shop: Owner) -> None:
    shop.write("raise ZeroDivisionError")
    with pytest.raises(ZeroDivisionError):
        await migrate(url, [shop.source])
    shop.rewrite()

    assert await migrate(url, [shop.source]) == ["shop:shop_0001", "shop:shop_0002"]


async def test_many_that_migrate_at_once_apply_each_step_once(url: str, shop: Owner) -> None:
    for _ in range(20):
        shop.write()
    sources = [CORE_MIGRATIONS, shop.source]
    results = await asyncio.gather(*(migrate(url, sources) for _ in range(4)))

    *others, one = sorted(results, key=len)
    assert others == [[], [], []]
    assert one[-21:] == [f"shop:shop_{number:04}" for number in range(1, 22)]


async def test_a_database_of_a_newer_release_is_not_touched(url: str, shop: Owner) -> None:
    shop.write(phase="contract")
    await migrate(url, [shop.source])
    (shop.source.folder / "0002_step.py").unlink()

    with pytest.raises(DatabaseTooNew):
        await migrate(url, [shop.source])
    with pytest.raises(DatabaseTooNew):
        await pending_revisions(url, [shop.source])


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_a_service_does_not_migrate_postgresql_by_itself(
    make_service: ServiceFactory, url: str
) -> None:
    with pytest.raises(MigrationsPending, match="msgsvc migrate"):
        await make_service(database_url=url)

    assert await tables(url) == set()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_service_migrates_its_file_by_itself(
    make_service: ServiceFactory, url: str
) -> None:
    service = await make_service(database_url=url)

    assert await service.projects.list() == []


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_a_service_does_not_start_on_a_postgresql_that_lacks_a_step(
    make_service: ServiceFactory, core_url: str, shop: Owner
) -> None:
    plugins = [("shop", Shop(shop.source))]
    await migrate(core_url, [CORE_MIGRATIONS, shop.source])
    shop.write()
    shop.write()

    with pytest.raises(MigrationsPending, match=r"lacks shop:shop_0002, shop:shop_0003; run"):
        await make_service(database_url=core_url, extra_plugins=plugins)

    assert await applied_revisions(core_url, [shop.source]) == {"shop": "shop_0001"}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_service_brings_its_older_file_up_to_date(
    make_service: ServiceFactory, core_url: str, shop: Owner
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, shop.source])
    shop.write()

    service = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(shop.source))])

    assert await applied_revisions(core_url, [shop.source]) == {"shop": "shop_0002"}
    assert await service.projects.list() == []


async def test_the_core_is_first_and_the_steps_of_an_owner_follow_one_another(
    migrated: Migrated,
) -> None:
    owners = [name.partition(":")[0] for name in migrated.applied]
    assert migrated.applied[-2:] == ["shop:shop_0001", "shop:shop_0002"]
    assert list(dict.fromkeys(owners)) == [source.owner for source in migrated.sources]
    assert owners[0] == "core"
    assert owners == sorted(owners, key=owners.index)


async def test_a_plugins_step_that_fails_leaves_nothing_of_the_core_behind(
    url: str, shop: Owner
) -> None:
    shop.write("raise ZeroDivisionError")

    with pytest.raises(ZeroDivisionError):
        await migrate(url, [CORE_MIGRATIONS, shop.source])

    assert await tables(url) == set()


async def test_what_a_table_holds_goes_through_its_owners_next_steps(
    core_url: str, shop: Owner
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, shop.source])
    await _write(core_url, "INSERT INTO shop_things_1 (id) VALUES (1), (2)")
    shop.write(COLUMN)
    shop.write("op.execute(\"UPDATE shop_things_1 SET name = 'thing ' || id\")")

    await migrate(core_url, [CORE_MIGRATIONS, shop.source])

    assert await _names(core_url) == ["thing 1", "thing 2"]


async def test_a_step_that_fails_halfway_leaves_what_a_table_held(url: str, shop: Owner) -> None:
    await migrate(url, [shop.source])
    await _write(url, "INSERT INTO shop_things_1 (id) VALUES (1), (2)")
    shop.write(COLUMN)
    await migrate(url, [shop.source])
    await _write(url, "UPDATE shop_things_1 SET name = 'old'")
    shop.write("op.execute(\"UPDATE shop_things_1 SET name = 'new'\"); raise ZeroDivisionError")

    with pytest.raises(ZeroDivisionError):
        await migrate(url, [shop.source])

    assert await _names(url) == ["old", "old"]
    assert await pending_revisions(url, [shop.source]) == ["shop:shop_0003"]


@pytest.mark.parametrize("owner", ["core", "drip"])
async def test_a_database_of_a_step_that_is_no_more_is_not_touched(
    migrated: Migrated, owner: str
) -> None:
    url, sources, table = migrated.url, migrated.sources, f"{owner}_migrations"
    newest = (await applied_revisions(url, sources))[owner]
    await _write(url, f"UPDATE {table} SET version_num = '{owner}_9999'")
    before = await applied_revisions(url, sources)

    try:
        with pytest.raises(DatabaseTooNew, match=f"{owner}_9999"):
            await migrate(url, sources)
        with pytest.raises(DatabaseTooNew, match=f"{owner}_9999"):
            await pending_revisions(url, sources)

        assert await applied_revisions(url, sources) == before
    finally:
        await _write(url, f"UPDATE {table} SET version_num = '{newest}'")


async def _write(url: str, statement: str) -> None:
    database = Database(url)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute(statement)
    await database.disconnect()


async def _names(url: str) -> list[str]:
    database = Database(url)
    await database.connect()
    async with database.read() as tx:
        rows = await tx.fetch_all("SELECT name FROM shop_things_1 ORDER BY id")
    await database.disconnect()
    return [row["name"] for row in rows]


def test_the_last_of_several_steps_is_the_newest(shop: Owner) -> None:
    shop.write()
    shop.write()

    assert shop.source.newest() == scripts_of(shop.source).get_current_head() == "shop_0003"


def test_the_newest_revision_is_read_as_alembic_reads_it() -> None:
    for source in installed_sources():
        assert source.newest() == scripts_of(source).get_current_head()


@pytest.mark.parametrize(
    "script",
    [
        'phase = "expand"\nrevision = "shop_%04d" % 2\ndown_revision = "shop_0001"',
        'phase = "expand"\nfrom somewhere import revision\ndown_revision = "shop_0001"',
        'phase = "expand"\nrevision = "shop_0002"\ndown_revision = None',
        'phase = "expand"\nrevision = "shop_0002"\ndown_revision = (\n    "shop_0001",\n)',
        'phase = "expand"\nrevision = "shop_0002"\ndown_revision = ("shop_0001",)',
    ],
    ids=["put together", "from elsewhere", "beside the other", "over several lines", "many before"],
)
def test_scripts_that_are_not_plain_are_left_to_alembic(shop: Owner, script: str) -> None:
    (shop.source.folder / "0002_step.py").write_text(script)

    assert shop.source.newest() is None


async def test_scripts_that_are_not_plain_are_applied(url: str, shop: Owner) -> None:
    shop.write()
    script = shop.source.folder / "0002_step.py"
    script.write_text(script.read_text().replace('"shop_0001"', '(\n    "shop_0001",\n)'))

    assert await migrate(url, [shop.source]) == ["shop:shop_0001", "shop:shop_0002"]
    assert await migrate(url, [shop.source]) == []
    assert await pending_revisions(url, [shop.source]) == []
