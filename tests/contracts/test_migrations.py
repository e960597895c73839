"""Migrations on both databases: from empty, again, together, and when a step fails."""

import asyncio
import shutil
from collections.abc import AsyncIterator
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
from msgsvc_core.db.migrations import scripts_of
from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import MigrationsPending, Service
from msgsvc_core.subscribers import store as subscribers
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.fixtures import SECRET_KEY, ServiceFactory

Backend = SQLiteDatabases | PostgresDatabases

SCRIPT = '''
"""A step of a test."""
from alembic import op
import sqlalchemy as sa

revision = "{owner}_{number:04}"
down_revision = {before!r}


def upgrade() -> None:
    {body}
'''

TABLE = 'op.create_table("{owner}_things_{number}", sa.Column("id", sa.Integer, primary_key=True))'


class Owner:
    """An owner whose scripts a test writes one by one."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.source = MigrationSource(name, folder)
        self._count = 0

    def write(self, body: str = TABLE) -> None:
        self._count += 1
        name, number = self.source.owner, self._count
        script = SCRIPT.format(
            owner=name,
            number=number,
            before=f"{name}_{number - 1:04}" if number > 1 else None,
            body=body.format(owner=name, number=number),
        )
        (self.source.folder / f"{number:04}_step.py").write_text(script)

    def rewrite(self, body: str = TABLE) -> None:
        """Mends the last script."""
        self._count -= 1
        self.write(body)


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


async def test_an_empty_database_gets_every_owners_tables(url: str) -> None:
    sources = installed_sources()

    applied = await migrate(url, sources)

    assert {name.partition(":")[0] for name in applied} == {source.owner for source in sources}
    found = await tables(url)
    assert all(any(name.startswith(f"{source.owner}_") for name in found) for source in sources)


async def test_every_table_begins_with_its_owners_name(url: str) -> None:
    sources = installed_sources()
    await migrate(url, sources)

    owners = tuple(f"{source.owner}_" for source in sources)
    assert all(name.startswith(owners) for name in await tables(url))


async def test_the_second_time_nothing_is_left_to_do(url: str) -> None:
    sources = installed_sources()
    await migrate(url, sources)

    assert await migrate(url, sources) == []


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
    url: str, shop: Owner
) -> None:
    await migrate(url, [CORE_MIGRATIONS, shop.source])

    assert await migrate(url, [CORE_MIGRATIONS]) == []
    assert await pending_revisions(url, [CORE_MIGRATIONS]) == []
    assert "shop_things_1" in await tables(url)


async def test_a_plugin_that_comes_back_goes_on_where_it_was(url: str, shop: Owner) -> None:
    await migrate(url, [CORE_MIGRATIONS, shop.source])
    await migrate(url, [CORE_MIGRATIONS])
    shop.write()

    assert await migrate(url, [CORE_MIGRATIONS, shop.source]) == ["shop:shop_0002"]


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


async def test_many_that_migrate_at_once_apply_each_step_once(url: str) -> None:
    results = await asyncio.gather(*(migrate(url, [CORE_MIGRATIONS]) for _ in range(4)))

    assert sorted(len(applied) for applied in results)[:3] == [0, 0, 0]


async def test_a_database_of_a_newer_release_is_not_touched(url: str, shop: Owner) -> None:
    shop.write()
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


async def test_tags_of_before_keep_their_people_and_links(url: str, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    scripts = sorted(CORE_MIGRATIONS.folder.glob("0*.py"))
    for script in scripts:
        if script.name < "0026":
            shutil.copy(script, before)
    await migrate(url, [MigrationSource(CORE_MIGRATIONS.owner, before)])
    await _write(
        url,
        "INSERT INTO core_projects (project_id, name, status, created_at_ms)"
        " VALUES ('prj_1', 'Shop', 'active', 0)",
        "INSERT INTO core_subscribers (project_id, subscriber_id, channel, bot, user_id, chat_id,"
        " first_name, lang, status, source, created_at_ms, last_seen_at_ms) VALUES ('prj_1', 'sub_1',"
        " 'a', 'a', 'u', 'c', 'Ann', 'en', 'active', 'api', 0, 0)",
        "INSERT INTO core_tags (project_id, name, created_at_ms) VALUES ('prj_1', 'vip', 0)",
        "INSERT INTO core_subscriber_tags (project_id, subscriber_id, tag)"
        " VALUES ('prj_1', 'sub_1', 'vip')",
    )

    await migrate(url, [CORE_MIGRATIONS])

    await _write(url, "UPDATE core_tags SET name = 'gold' WHERE name = 'vip'")
    database = Database(url)
    await database.connect()
    async with database.read() as tx:
        person = await subscribers.find(tx, "prj_1", "sub_1")
    await database.disconnect()
    assert person is not None
    assert person.tags == ("gold",)


async def _write(url: str, *statements: str) -> None:
    database = Database(url)
    await database.connect()
    async with database.transaction() as tx:
        for statement in statements:
            await tx.execute(statement)
    await database.disconnect()


def test_the_newest_revision_is_read_as_alembic_reads_it() -> None:
    for source in installed_sources():
        assert source.newest() == scripts_of(source).get_current_head()


@pytest.mark.parametrize(
    "script",
    [
        'revision = "shop_%04d" % 2\ndown_revision = "shop_0001"',
        'from somewhere import revision\ndown_revision = "shop_0001"',
        'revision = "shop_0002"\ndown_revision = None',
        'revision = "shop_0002"\ndown_revision = (\n    "shop_0001",\n)',
        'revision = "shop_0002"\ndown_revision = ("shop_0001",)',
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
