"""Copies, backups and restores: everything of a furnished database arrives, and works."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db import CORE_MIGRATIONS
from msgsvc_core.db.copying import Copied, Scope, backup, copy, restore
from msgsvc_core.db.copying.tables import read_tables
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.errors import CopyRefused
from msgsvc_core.db.unfinished import UnfinishedCopy
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from tests.copied import Original
from tests.e2e.furnished import furnished

#: The scope of a service without plugins.
CORE = Scope([CORE_MIGRATIONS], CORE_NOT_COPIED)

LABEL = {"release": "1.0", "created_at": "2026-01-01T00:00:00.000Z"}


def unseen(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    async with furnished(tmp_path_factory.mktemp("original")) as made:
        return await Original.of(made)


@pytest.fixture
def postgres(databases: dict[str, Any]) -> Any:
    if "postgresql" not in databases:
        pytest.skip("PostgreSQL does not answer")
    return databases["postgresql"]


def rows_of(url: str) -> dict[str, set[tuple[Any, ...]]]:
    """All rows of a file by table, read without what is tested."""
    with closing(sqlite3.connect(sqlite_path(url))) as connection:
        connection.row_factory = sqlite3.Row
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        found = {}
        for (name,) in names:
            rows = connection.execute(f"SELECT * FROM {name}").fetchall()
            found[name] = {
                tuple(
                    row[column]
                    for column in row.keys()
                    if f"{name}.{column}" not in CORE_NOT_COPIED
                )
                for row in rows
            }
        return found


async def test_everything_is_the_same_in_postgresql_and_back_in_sqlite(
    original: Original, postgres: Any, tmp_path: Path
) -> None:
    there, back = await postgres.empty(), f"sqlite:///{tmp_path / 'back.db'}"

    moved = await copy(original.url, there, original.scope, unseen)
    returned = await copy(there, back, original.scope, unseen)

    before = rows_of(original.url)
    versions = original.scope.version_tables
    assert moved == returned
    assert moved.tables.keys() == before.keys() - versions
    assert {name: each.rows for name, each in moved.tables.items()} == {
        name: len(rows) for name, rows in before.items() if name not in versions
    }
    assert sum(each.rows > 0 for each in moved.tables.values()) > len(moved.tables) / 2
    assert rows_of(back) == before
    await original.works_in(there)
    await original.works_in(back)
    await postgres.give_back(there)


async def test_a_column_that_one_database_lacks_is_left_out_on_purpose(
    original: Original, postgres: Any
) -> None:
    empty = await postgres.fresh(original.scope.migrations)
    sqlite, postgresql = await read_tables(original.url, ()), await read_tables(empty, ())
    await postgres.give_back(empty)

    def columns(tables: Any) -> set[tuple[str, str]]:
        return {
            (f"{table.name}.{column}", kind)
            for table in tables.values()
            for column, kind in zip(table.columns, table.kinds, strict=True)
        }

    assert {name for name, _ in columns(sqlite) ^ columns(postgresql)} == CORE_NOT_COPIED.keys()


@pytest.fixture
async def target(databases: dict[str, Any]) -> str:
    """A file with the core's tables and no rows. Migrating an empty one takes half of most tests; the first
    test does, and on PostgreSQL too."""
    return str(await databases["sqlite"].fresh(CORE.migrations))


async def filled(make_service: ServiceFactory) -> Service:
    """A running service with a project."""
    service = await make_service()
    await service.projects.create("Shop")
    return service


async def test_a_running_service_is_not_copied(
    make_service: ServiceFactory, tmp_path: Path
) -> None:
    service = await filled(make_service)

    with pytest.raises(CopyRefused, match="stop the service first"):
        await copy(service.settings.database_url, f"sqlite:///{tmp_path / 'to.db'}", CORE, unseen)


async def test_a_target_with_rows_is_refused(make_service: ServiceFactory, target: str) -> None:
    service = await filled(make_service)
    await service.stop()
    url = service.settings.database_url
    await copy(url, target, CORE, unseen)

    with pytest.raises(CopyRefused, match="is not empty"):
        await copy(url, target, CORE, unseen)


async def test_tables_that_no_loaded_plugin_owns_are_named(
    make_service: ServiceFactory, target: str
) -> None:
    service = await filled(make_service)
    async with service.db.transaction() as tx:
        await tx.execute("CREATE TABLE otp_codes (otp_id TEXT PRIMARY KEY)")
    await service.stop()

    try:
        with pytest.raises(CopyRefused, match="owns otp_codes"):
            await copy(service.settings.database_url, target, CORE, unseen)
    finally:
        async with service, service.db.transaction() as tx:
            await tx.execute("DROP TABLE otp_codes")


async def test_an_interrupted_copy_is_not_served_and_is_continued(
    make_service: ServiceFactory, target: str
) -> None:
    service = await filled(make_service)
    await service.stop()
    url = service.settings.database_url
    interrupted = await interrupt(url, target)

    with pytest.raises(UnfinishedCopy, match="interrupted"):
        await make_service(database_url=target)
    copied = await copy(url, target, CORE, unseen)

    assert interrupted
    assert copied.tables["core_projects"].rows == 1
    await make_service(database_url=target)


async def interrupt(url: str, target: str) -> bool:
    """Ends a copy after its first row."""

    class Interrupted(Exception):
        pass

    def on_progress(what: str, done: int, total: int) -> None:
        if done:
            raise Interrupted

    with pytest.raises(Interrupted):
        await copy(url, target, CORE, on_progress)
    return True


async def test_an_interrupted_copy_of_another_database_is_not_mixed_with_this_one(
    make_service: ServiceFactory, target: str
) -> None:
    one, other = await filled(make_service), await filled(make_service)
    await one.stop()
    await other.stop()
    await interrupt(one.settings.database_url, target)

    with pytest.raises(CopyRefused, match="interrupted copy of"):
        await copy(other.settings.database_url, target, CORE, unseen)


async def test_a_source_that_changed_since_the_interruption_is_noticed(
    make_service: ServiceFactory, target: str
) -> None:
    service = await filled(make_service)
    url = service.settings.database_url
    await service.stop()
    await interrupt(url, target)
    async with service, service.db.transaction() as tx:
        await tx.execute("UPDATE core_projects SET name = 'Renamed'")

    with pytest.raises(CopyRefused, match="has changed since"):
        await copy(url, target, CORE, unseen)
    with pytest.raises(UnfinishedCopy):
        await make_service(database_url=target)


async def test_a_backup_of_a_running_service_is_restored_into_either_database(
    make_service: ServiceFactory, postgres: Any, target: str, tmp_path: Path
) -> None:
    service, file = await filled(make_service), tmp_path / "copy.backup"
    written = await backup(service.settings.database_url, file, CORE, unseen, **LABEL)
    await service.projects.create("Later")
    targets = [target, await postgres.fresh(CORE.migrations)]

    restored = [await restore(file, url, CORE, unseen) for url in targets]

    assert restored == [written, written]
    assert file.stat().st_mode & 0o077 == 0
    assert not file.with_name("copy.backup.partial").exists()
    for url in targets:
        other = await make_service(database_url=url)
        assert [each.name for each in await other.projects.list()] == ["Shop"]
        await other.stop()
    await postgres.give_back(targets[1])


async def test_a_restore_needs_an_empty_database(
    make_service: ServiceFactory, tmp_path: Path
) -> None:
    service, file = await filled(make_service), tmp_path / "copy.backup"
    url = service.settings.database_url
    await backup(url, file, CORE, unseen, **LABEL)

    with pytest.raises(CopyRefused, match="stop the service first"):
        await restore(file, url, CORE, unseen)
    await service.stop()
    with pytest.raises(CopyRefused, match="is not empty"):
        await restore(file, url, CORE, unseen)


@dataclass(frozen=True, slots=True)
class Wrong:
    """A change of a backup's label, and what the refusal says."""

    change: dict[str, Any]
    says: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong({"format": 2}, "restore it with release 1.0"),
        Wrong({"revisions": {"core": "core_0000"}}, "other revisions of core .*release 1.0"),
        Wrong({"revisions": {"core": CORE_MIGRATIONS.newest(), "otp": "otp_0001"}}, "data of otp"),
        Wrong({"revisions": {}}, "nothing of core"),
        Wrong({"tables": {}}, "is not as it was written"),
    ],
    ids=lambda wrong: wrong.says,
)
async def test_a_wrong_backup_is_refused_with_what_to_do(
    target: str, wrong: Wrong, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.backup"
    await backup(target, file, CORE, unseen, **LABEL)
    relabel(file, wrong.change)

    with pytest.raises(CopyRefused, match=wrong.says):
        await restore(file, f"sqlite:///{tmp_path / 'to.db'}", CORE, unseen)


def relabel(file: Path, change: dict[str, Any]) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        [(label,)] = connection.execute("SELECT label FROM msgsvc_backup")
        changed = json.dumps({**json.loads(label), **change})
        connection.execute("UPDATE msgsvc_backup SET label = ?", (changed,))


async def test_another_file_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Bread, milk")

    for name in ("notes.txt", "absent"):
        with pytest.raises(CopyRefused, match=r"no backup|no such file"):
            await restore(tmp_path / name, f"sqlite:///{tmp_path / 'to.db'}", CORE, unseen)


async def test_a_backup_overwrites_nothing(make_service: ServiceFactory, tmp_path: Path) -> None:
    service, file = await filled(make_service), tmp_path / "copy.backup"
    file.write_text("of yesterday")

    with pytest.raises(CopyRefused, match="exists"):
        await backup(service.settings.database_url, file, CORE, unseen, **LABEL)

    assert file.read_text() == "of yesterday"


def test_rows_of_a_copy_are_counted() -> None:
    assert Copied({}).rows == 0
