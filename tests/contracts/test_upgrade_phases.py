"""Upgrades in two halves: what runs while processes of the earlier release serve, and what runs after."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from msgsvc_core.db import (
    CORE_MIGRATIONS,
    Database,
    DatabaseTooNew,
    MigrationRefused,
    MigrationSource,
    applied_revisions,
    migrate,
    migrations,
    read_schema,
)
from msgsvc_core.db.opening import MigrationsPending
from msgsvc_core.db.revisions import AppliedStep, read_applied
from msgsvc_core.db.schema import this_release
from msgsvc_core.db.sessions import CONTRACT_LOCK, session_name
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.fixtures import ServiceFactory
from tests.contracts.migration_scripts import COLUMN, TABLE, Owner, Shop, as_of

DROP = 'op.drop_column("shop_things_1", "name")'
INDEX = (
    'op.create_index("shop_things_name", "shop_things_1", ["name"], if_not_exists=True,'
    " postgresql_concurrently=True)\n\n\ntransactional = False"
)

ON_POSTGRESQL = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
ON_SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def shop(tmp_path: Path) -> Owner:
    """An owner with a table, which a newer release adds a column to and then takes it away."""
    owner = Owner("shop", tmp_path / "shop")
    owner.write()
    owner.write(COLUMN)
    owner.write(DROP, "contract")
    return owner


@pytest.fixture
def old_shop(shop: Owner, tmp_path: Path) -> MigrationSource:
    """The same in the release before."""
    return as_of(shop, 1, tmp_path / "old")


async def columns(url: str) -> set[str]:
    database = Database(url)
    await database.connect()
    async with database.read() as tx:
        rows = await tx.fetch_all(
            "SELECT name AS name FROM pragma_table_info('shop_things_1')"
            if tx.dialect == "sqlite"
            else "SELECT attname AS name FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped"
            " AND attrelid = 'shop_things_1'::regclass"
        )
    await database.disconnect()
    return {row["name"] for row in rows}


@asynccontextmanager
async def session(url: str, **options: Any) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, server_settings=options)
    try:
        yield connection
    finally:
        await connection.close()


async def test_each_phase_applies_its_own_steps(
    url: str, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(url, [old_shop])

    expanded = await migrate(url, [shop.source], "expand")
    between = await columns(url)
    contracted = await migrate(url, [shop.source], "contract")

    assert expanded == ["shop:shop_0002"]
    assert between == {"id", "name"}
    assert contracted == ["shop:shop_0003"]
    assert await columns(url) == {"id"}


@pytest.mark.parametrize("phase", ["expand", "contract"])
async def test_a_phase_that_was_applied_has_nothing_left_to_do(
    url: str, shop: Owner, phase: Any
) -> None:
    await migrate(url, [shop.source])

    assert await migrate(url, [shop.source], phase) == []


async def test_the_second_half_does_not_run_before_the_first(
    url: str, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(url, [old_shop])

    with pytest.raises(MigrationRefused, match=r"shop:shop_0002 come first.*--phase expand"):
        await migrate(url, [shop.source], "contract")


async def test_a_new_owner_gets_all_its_tables_in_the_first_half(url: str, shop: Owner) -> None:
    shop.write()

    applied = await migrate(url, [shop.source], "expand")

    assert applied == [f"shop:shop_000{number}" for number in (1, 2, 3, 4)]
    assert await migrate(url, [shop.source], "contract") == []


async def test_halves_of_several_owners_do_not_mix(url: str, shop: Owner, tmp_path: Path) -> None:
    first = Owner("first", tmp_path / "first")
    first.write()
    await migrate(url, [first.source, as_of(shop, 1, tmp_path / "before")])
    first.write(TABLE, "contract")

    applied = await migrate(url, [first.source, shop.source])

    assert applied == ["shop:shop_0002", "first:first_0002", "shop:shop_0003"]


async def test_a_release_that_was_skipped_is_caught_up_with_in_order(
    url: str, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(url, [old_shop])
    shop.write()

    with pytest.raises(MigrationRefused, match=r"shop:shop_0003 of an earlier release"):
        await migrate(url, [shop.source], "expand")

    assert await applied_revisions(url, [shop.source]) == {"shop": "shop_0001"}
    assert await migrate(url, [shop.source]) == [f"shop:shop_000{number}" for number in (2, 3, 4)]


async def test_an_earlier_release_starts_on_a_database_that_was_expanded(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    await migrate(core_url, [CORE_MIGRATIONS, shop.source], "expand")

    service = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(old_shop))])

    assert await service.projects.list() == []
    assert await service.migrate() == []
    assert (await applied_revisions(core_url, [shop.source]))["shop"] == "shop_0002"


async def test_an_earlier_release_does_not_start_on_a_database_that_was_contracted(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    await migrate(core_url, [CORE_MIGRATIONS, shop.source])

    with pytest.raises(DatabaseTooNew) as refusal:
        await make_service(database_url=core_url, extra_plugins=[("shop", Shop(old_shop))])

    text = str(refusal.value)
    assert f"shop:shop_0002 (of {this_release()}), shop:shop_0003 (of {this_release()})" in text
    assert "msgsvc restore" in text


async def test_all_owners_steps_that_are_not_known_are_named(
    url: str, shop: Owner, old_shop: MigrationSource, tmp_path: Path
) -> None:
    other = Owner("other", tmp_path / "other")
    other.write()
    old_other = as_of(other, 1, tmp_path / "old_other")
    other.write(TABLE, "contract")
    await migrate(url, [other.source, shop.source])

    with pytest.raises(DatabaseTooNew, match=r"other:other_0002.*shop:shop_0003"):
        await migrate(url, [old_other, old_shop])


async def test_the_history_of_a_database_of_an_early_release_is_recorded_afterwards(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    database = Database(core_url)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute("ALTER TABLE shop_migrations DROP COLUMN history")
    await database.disconnect()
    await migrate(core_url, [CORE_MIGRATIONS, shop.source], "expand")

    service = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(old_shop))])

    assert await service.projects.list() == []
    assert (await read_applied(core_url, [shop.source]))["shop"].history == (
        AppliedStep("shop_0001", "expand", ""),
        AppliedStep("shop_0002", "expand", this_release()),
    )


@ON_POSTGRESQL
async def test_a_service_starts_when_the_first_half_was_applied(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource
) -> None:
    sources = [CORE_MIGRATIONS, shop.source]
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    with pytest.raises(MigrationsPending, match="lacks shop:shop_0002; run"):
        await make_service(database_url=core_url, extra_plugins=[("shop", Shop(shop.source))])
    await migrate(core_url, sources, "expand")

    service = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(shop.source))])

    assert await service.projects.list() == []
    assert await migrate(core_url, sources, "contract") == ["shop:shop_0003"]


@ON_SQLITE
async def test_a_start_applies_both_halves_to_a_file(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])

    await make_service(database_url=core_url, extra_plugins=[("shop", Shop(shop.source))])

    assert await applied_revisions(core_url, [shop.source]) == {"shop": "shop_0003"}


@ON_SQLITE
async def test_a_start_leaves_the_second_half_while_another_process_has_the_file_open(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    earlier = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(old_shop))])
    later = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(shop.source))])

    assert await applied_revisions(core_url, [shop.source]) == {"shop": "shop_0002"}
    assert await earlier.projects.list() == await later.projects.list() == []


@pytest.mark.parametrize("phase", ["contract", None])
async def test_a_contraction_waits_until_earlier_processes_have_ended(
    core_url: str, make_service: ServiceFactory, shop: Owner, old_shop: MigrationSource, phase: Any
) -> None:
    sources = [CORE_MIGRATIONS, shop.source]
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    earlier = await make_service(database_url=core_url, extra_plugins=[("shop", Shop(old_shop))])
    if phase:
        await migrate(core_url, sources, "expand")
    before = await applied_revisions(core_url, [shop.source])

    with pytest.raises(MigrationRefused) as refusal:
        await migrate(core_url, sources, phase)
    assert await applied_revisions(core_url, [shop.source]) == before
    assert await earlier.projects.list() == []
    await earlier.stop()

    assert (await migrate(core_url, sources, phase))[-1] == "shop:shop_0003"
    named = (
        session_name([CORE_MIGRATIONS, old_shop]) if core_url.startswith("postgres") else "fuser"
    )
    assert named in str(refusal.value)
    assert "stop" in str(refusal.value)


@ON_POSTGRESQL
async def test_sessions_of_releases_that_did_not_name_their_schema_are_earlier_ones(
    url: str, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(url, [old_shop])
    async with session(url, application_name="msgsvc"):
        with pytest.raises(MigrationRefused, match="msgsvc from"):
            await migrate(url, [shop.source])


@ON_POSTGRESQL
async def test_a_process_does_not_start_while_the_schema_is_contracted(
    core_url: str, make_service: ServiceFactory, old_shop: MigrationSource
) -> None:
    await migrate(core_url, [CORE_MIGRATIONS, old_shop])
    async with session(core_url) as contracting:
        await contracting.execute(f"SELECT pg_advisory_lock({CONTRACT_LOCK})")
        starting = asyncio.create_task(
            make_service(database_url=core_url, extra_plugins=[("shop", Shop(old_shop))])
        )
        await _until_somebody_waits(contracting)
        assert not starting.done()
    service = await starting

    assert await service.projects.list() == []


@ON_POSTGRESQL
async def test_each_step_is_a_transaction_once_there_are_tables(
    url: str, shop: Owner, old_shop: MigrationSource
) -> None:
    await migrate(url, [old_shop])
    shop.rewrite(f"{TABLE}\n    raise ZeroDivisionError")

    with pytest.raises(ZeroDivisionError):
        await migrate(url, [shop.source])
    assert await applied_revisions(url, [shop.source]) == {"shop": "shop_0002"}
    shop.rewrite()

    assert await migrate(url, [shop.source]) == ["shop:shop_0003"]


async def test_an_index_is_built_beside_writers(url: str, shop: Owner, tmp_path: Path) -> None:
    before = as_of(shop, 2, tmp_path / "before")
    await migrate(url, [before])
    shop.rewrite(INDEX)

    assert await migrate(url, [shop.source], "expand") == ["shop:shop_0003"]
    assert await migrate(url, [shop.source], "expand") == []
    assert not (await read_schema(url, [shop.source]))[0].pending


@ON_POSTGRESQL
async def test_an_index_whose_building_was_interrupted_is_built_again(
    url: str, shop: Owner, tmp_path: Path
) -> None:
    await migrate(url, [as_of(shop, 2, tmp_path / "before")])
    shop.rewrite(INDEX)
    async with session(url) as other:
        await other.execute("INSERT INTO shop_things_1 (id, name) VALUES (1, 'a'), (2, 'a')")
        with pytest.raises(asyncpg.UniqueViolationError):
            await other.execute(
                "CREATE UNIQUE INDEX CONCURRENTLY shop_things_name ON shop_things_1 (name)"
            )

        await migrate(url, [shop.source])

        assert await other.fetchval(
            "SELECT indisvalid AND NOT indisunique FROM pg_index"
            " WHERE indexrelid = 'shop_things_name'::regclass"
        )


@ON_POSTGRESQL
async def test_a_step_gives_way_to_transactions_and_tries_again(
    url: str, shop: Owner, old_shop: MigrationSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT_S", 0.05)
    monkeypatch.setattr(migrations, "LOCK_PAUSES_S", (0.05,))
    monkeypatch.setattr(migrations, "LOCK_ATTEMPTS", 1000)
    await migrate(url, [old_shop])
    async with session(url) as user, session(url) as other:
        async with user.transaction():
            await user.execute("SELECT * FROM shop_things_1")
            migrating = asyncio.create_task(migrate(url, [shop.source], "expand"))
            await _until_somebody_waits(other)
            # It would wait behind the migration, if that did not give way.
            await other.execute("INSERT INTO shop_things_1 (id) VALUES (1)")
            assert not migrating.done()

        assert await migrating == ["shop:shop_0002"]


@ON_POSTGRESQL
async def test_a_step_that_never_gets_its_table_says_so(
    url: str, shop: Owner, old_shop: MigrationSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT_S", 0.02)
    monkeypatch.setattr(migrations, "LOCK_PAUSES_S", (0.01,))
    monkeypatch.setattr(migrations, "LOCK_ATTEMPTS", 3)
    await migrate(url, [old_shop])
    async with session(url) as user, user.transaction():
        await user.execute("SELECT * FROM shop_things_1")

        with pytest.raises(MigrationRefused, match=r"shop:shop_0002 .* 3 times"):
            await migrate(url, [shop.source], "expand")

    assert await applied_revisions(url, [shop.source]) == {"shop": "shop_0001"}


@pytest.mark.parametrize("phase", ["", 'phase = "later"\n'])
async def test_a_script_without_a_phase_is_refused(url: str, shop: Owner, phase: str) -> None:
    script = shop.source.folder / "0002_step.py"
    script.write_text(re.sub(r"phase = .*\n", phase, script.read_text()))

    with pytest.raises(PluginError, match=r"0002_step.py has no phase"):
        await migrate(url, [shop.source])


def test_a_session_names_the_release_and_its_schema(shop: Owner, old_shop: MigrationSource) -> None:
    name = session_name([CORE_MIGRATIONS, shop.source])

    assert re.fullmatch(rf"msgsvc {re.escape(this_release())} [0-9a-f]{{8}}", name)
    assert name == session_name([shop.source, CORE_MIGRATIONS])
    assert name != session_name([CORE_MIGRATIONS, old_shop])


async def _until_somebody_waits(connection: asyncpg.Connection) -> None:
    waiting = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock')"
    )
    async with asyncio.timeout(patient(20)):
        while not await connection.fetchval(waiting):  # noqa: ASYNC110 - another process waits
            await asyncio.sleep(0.005)
