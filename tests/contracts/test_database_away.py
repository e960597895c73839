"""Databases that can't be opened, go away, are closed, or are somebody else's at the moment."""

import asyncio
import stat
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from msgsvc_core.db import Database, DatabaseUnavailable, LockTimeout
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.work import PATIENCE_S
from tests.contracts.things import add, names
from tests.expectations import failing

Backend = SQLiteDatabases | PostgresDatabases


DEAD = "postgresql://postgres@127.0.0.1:1/postgres"


async def test_a_dead_server_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        await Database(DEAD).connect()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    "changes", [{"path": "/no_such_database"}, {"user": "nobody_of_that_name:wrong"}]
)
async def test_a_server_that_does_not_let_us_in_is_unavailable(
    url: str, changes: dict[str, str]
) -> None:
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    netloc = f"{changes.get('user', user)}@{host}"
    target = parts._replace(netloc=netloc, path=changes.get("path", parts.path)).geturl()
    with pytest.raises(DatabaseUnavailable):
        await Database(target).connect()


@pytest.mark.parametrize("kind", ["folder", "text"])
async def test_a_file_that_is_no_database_is_unavailable_and_leaves_no_thread(
    tmp_path: Path, kind: str
) -> None:
    before = set(threading.enumerate())
    path = tmp_path / "odd.db"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text("no database at all, but long enough to be taken for one" * 100)
    with pytest.raises(DatabaseUnavailable):
        await Database(f"sqlite:///{path}").connect()

    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in left)


async def test_a_new_file_can_be_opened_by_many_at_once(tmp_path: Path) -> None:
    async def open_and_close(path: Path) -> None:
        database = Database(f"sqlite:///{path}")
        await database.connect()
        await database.disconnect()

    # Without waiting for each other, one of some thirty failed.
    for number in range(30):
        path = tmp_path / f"{number}.db"
        await asyncio.gather(*(open_and_close(path) for _ in range(6)))


async def test_a_file_in_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/new/folder/msgsvc.db")
    with pytest.raises(DatabaseUnavailable, match="no folder"):
        await database.connect()

    assert not (tmp_path / "new").exists()


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_a_new_file_and_its_journals_are_their_owners_alone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/msgsvc.db")
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute("CREATE TABLE core_trial (id INTEGER)")
    modes = _modes(tmp_path)
    await database.disconnect()

    assert modes == dict.fromkeys(("msgsvc.db", "msgsvc.db-wal", "msgsvc.db-shm"), 0o600)


async def test_a_closed_database_is_unavailable_instead_of_waiting(db: Database) -> None:
    await db.disconnect()

    for block in (db.read, db.transaction):
        async with failing(DatabaseUnavailable), asyncio.timeout(PATIENCE_S), block():
            pass


async def test_closing_waits_for_those_who_are_at_work(db: Database) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with db.transaction() as tx:
            await add(tx, 1)
            began.set()
            await may_end.wait()
            await add(tx, 2)

    at_work = asyncio.create_task(work())
    await began.wait()
    closing = asyncio.create_task(db.disconnect())
    await asyncio.sleep(0)
    async with failing(DatabaseUnavailable), db.transaction():
        pass
    may_end.set()
    await asyncio.gather(at_work, closing)
    await db.connect()

    assert await names(db) == ["thing", "thing"]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_a_connection_that_the_server_ended_is_unavailable_once(
    db: Database, url: str
) -> None:
    killer = await asyncpg.connect(url)
    try:
        for _ in range(10):
            async with failing(DatabaseUnavailable), db.transaction() as tx:
                backend_id = await tx.fetch_val("SELECT pg_backend_pid()")
                await killer.execute(f"SELECT pg_terminate_backend({backend_id}, 5000)")
                await tx.fetch_val("SELECT 1")
    finally:
        await killer.close()

    async with db.transaction() as tx:
        await add(tx, 1)
    assert await names(db) == ["thing"]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_waiting_for_a_lock_ends_when_it_was_bounded(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
    async with db.transaction() as holder:
        await holder.execute("UPDATE things SET number = 2")
        async with failing(LockTimeout), db.transaction() as waiter:
            await waiter.wait_for_locks(0.05)
            await waiter.execute("UPDATE things SET number = 3")


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_two_processes_may_write_one_file(db: Database, url: str) -> None:
    other = Database(url)
    await other.connect()

    async def write(database: Database, start: int) -> None:
        for number in range(start, start + 20):
            async with database.transaction() as tx:
                await add(tx, number)

    await asyncio.gather(write(db, 0), write(other, 100))
    await other.disconnect()

    assert len(await names(db)) == 40


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("pragma", "value"), [("journal_mode", "wal"), ("foreign_keys", 1), ("synchronous", 2)]
)
async def test_every_connection_to_a_file_has_our_settings(
    db: Database, pragma: str, value: Any
) -> None:
    for _ in range(5):
        async with db.transaction() as writer, db.read() as reader:
            assert await writer.fetch_val(f"PRAGMA {pragma}") == value
            assert await reader.fetch_val(f"PRAGMA {pragma}") == value


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_reading_connection_can_not_write(db: Database) -> None:
    async with failing(DatabaseUnavailable, match="readonly"), db.read() as tx:
        await add(tx, 1)
