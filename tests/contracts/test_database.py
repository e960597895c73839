"""What `Database` promises, over SQLite and PostgreSQL."""

import asyncio
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from msgsvc_core.db import Database, DatabaseUnavailable, LockTimeout, Tx
from msgsvc_core.db.rows import ROWS_PER_INSERT
from msgsvc_core.testing.databases import PostgresDatabases, SQLiteDatabases
from tests.expectations import failing

Backend = SQLiteDatabases | PostgresDatabases

TABLES = (
    "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, number BIGINT)",
    "CREATE TABLE parts (id INTEGER PRIMARY KEY, thing_id INTEGER NOT NULL REFERENCES things (id))",
)


@pytest.fixture
async def url(backend: Backend) -> AsyncIterator[str]:
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


async def names(db: Database) -> list[str]:
    async with db.read() as tx:
        return [row["name"] for row in await tx.fetch_all("SELECT name FROM things ORDER BY id")]


async def add(tx: Tx, number: int, name: str | None = "thing") -> None:
    await tx.insert("things", {"id": number, "name": name, "number": number})


async def test_what_a_block_wrote_is_there_after_it(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "kept")

    assert await names(db) == ["kept"]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, asyncio.CancelledError])
async def test_a_block_that_raises_is_rolled_back(db: Database, error: type[BaseException]) -> None:
    async with failing(error), db.transaction() as tx:
        await add(tx, 1)
        raise error

    assert await names(db) == []


async def test_a_statement_that_fails_rolls_everything_back(db: Database) -> None:
    async with failing(Exception, match=r"(?i)nowhere"), db.transaction() as tx:
        await add(tx, 1)
        await tx.execute("INSERT INTO nowhere VALUES (1)")

    assert await names(db) == []


async def test_what_is_not_committed_is_seen_by_nobody_else(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1)
        assert await names(db) == []


async def open_transactions(db: Database, url: str) -> int:
    """How many connections stand inside a transaction."""
    if db.dialect == "sqlite":
        return sum(connection.in_transaction for connection in db._backend._connections)
    other = await asyncpg.connect(url)
    try:
        return int(
            await other.fetchval(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            )
        )
    finally:
        await other.close()


async def test_200_cancellations_leave_the_pool_whole_and_no_transaction_open(
    db: Database, url: str
) -> None:
    async def work(number: int) -> None:
        async with db.transaction() as tx:
            await add(tx, number)
            await tx.fetch_all("SELECT * FROM things")
            await tx.execute("UPDATE things SET number = number + 1")

    for number in range(200):
        task = asyncio.create_task(work(number))
        # Each is cancelled at another step, from before BEGIN to after COMMIT.
        for _ in range(number % 25):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async with asyncio.timeout(10):
        async with db.transaction() as first:
            await first.execute("SELECT 1")
            async with db.read() as second:
                await second.execute("SELECT 1")
    assert await open_transactions(db, url) == 0


async def test_a_cancellation_while_waiting_for_a_connection_loses_none(db: Database) -> None:
    for _ in range(20):
        async with db.transaction(), db.read():
            waiting = [asyncio.create_task(_read(db)) for _ in range(5)]
            waiting += [asyncio.create_task(_write(db)) for _ in range(5)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)

    async with asyncio.timeout(10):
        await asyncio.gather(*(_write(db) for _ in range(5)), *(_read(db) for _ in range(5)))


async def _read(db: Database) -> None:
    async with db.read() as tx:
        await tx.execute("SELECT 1")


async def _write(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("SELECT 1")


async def test_fifty_increments_side_by_side_lose_nothing(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.insert("things", {"id": 1, "name": "counter", "number": 0})

    async def increment() -> None:
        async with db.transaction() as tx:
            lock = "" if tx.dialect == "sqlite" else " FOR UPDATE"
            number = await tx.fetch_val(f"SELECT number FROM things WHERE id = 1{lock}")
            await tx.execute("UPDATE things SET number = :new WHERE id = 1", {"new": number + 1})

    await asyncio.gather(*(increment() for _ in range(50)))

    async with db.read() as tx:
        assert await tx.fetch_val("SELECT number FROM things") == 50


async def test_a_named_lock_keeps_transactions_apart(db: Database) -> None:
    async def add_if_room() -> None:
        async with db.transaction() as tx:
            await tx.lock("three things")
            count = int(await tx.fetch_val("SELECT COUNT(*) FROM things"))
            if count < 3:
                await add(tx, count)

    await asyncio.gather(*(add_if_room() for _ in range(10)))

    assert len(await names(db)) == 3


async def test_reads_see_the_newest_commits(db: Database) -> None:
    async with db.read() as reader:
        for number in range(3):
            async with db.transaction() as tx:
                await add(tx, number)
            assert await reader.fetch_val("SELECT COUNT(*) FROM things") == number + 1


# ---- savepoints and callbacks -------------------------------------------------------------------


async def test_a_savepoint_undoes_only_what_is_inside(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "before")
        async with failing(ZeroDivisionError), tx.savepoint():
            await add(tx, 2, "inside")
            raise ZeroDivisionError
        await add(tx, 3, "after")

    assert await names(db) == ["before", "after"]


async def test_a_savepoint_that_ends_well_is_kept(db: Database) -> None:
    async with db.transaction() as tx, tx.savepoint():
        await add(tx, 1, "inside")

    assert await names(db) == ["inside"]


async def test_an_outer_savepoint_undoes_what_came_before_a_failed_inner_one(db: Database) -> None:
    async with db.transaction() as tx, failing(LookupError), tx.savepoint():
        await add(tx, 1, "outer")
        with pytest.raises(ZeroDivisionError):
            async with tx.savepoint():
                raise ZeroDivisionError
        raise LookupError

    assert await names(db) == []


async def test_a_failed_statement_in_a_savepoint_spares_the_transaction(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "first")
        async with failing(Exception, match=r"(?i)unique"), tx.savepoint():
            await add(tx, 1, "again")

    assert await names(db) == ["first"]


async def test_callbacks_run_after_the_commit_and_in_order(db: Database) -> None:
    called: list[str] = []
    async with db.transaction() as tx:
        tx.on_commit(lambda: called.append("first"))
        tx.on_commit(lambda: called.append("second"))
        before = list(called)

    assert (before, called) == ([], ["first", "second"])


async def test_callbacks_of_a_rolled_back_transaction_never_run(db: Database) -> None:
    called: list[int] = []
    async with failing(ZeroDivisionError), db.transaction() as tx:
        tx.on_commit(lambda: called.append(1))
        raise ZeroDivisionError

    assert called == []


async def test_callbacks_of_a_rolled_back_savepoint_never_run(db: Database) -> None:
    called: list[str] = []
    async with db.transaction() as tx:
        tx.on_commit(lambda: called.append("outer"))
        async with failing(ZeroDivisionError), tx.savepoint():
            tx.on_commit(lambda: called.append("inner"))
            raise ZeroDivisionError

    assert called == ["outer"]


async def test_a_commit_during_which_the_caller_is_cancelled_has_its_callbacks(
    db: Database,
) -> None:
    async def write(number: int) -> None:
        async with db.transaction() as tx:
            await add(tx, number)
            tx.on_commit(lambda: called.append(number))

    called: list[int] = []
    for number in range(60):
        task = asyncio.create_task(write(number))
        for _ in range(number % 20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT id FROM things ORDER BY id")
    assert [row["id"] for row in rows] == sorted(called)


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["100 %", "%s %(a)s %%", "a:b :name ::text", "it's", '"', "\\", "é😀", "", "a\nb\tc", "$1 ?"],
)
async def test_any_text_comes_back_as_it_was(db: Database, text: str) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, text)
        found = await tx.fetch_val("SELECT id FROM things WHERE name = :name", {"name": text})

    assert found == 1
    assert await names(db) == [text]


async def test_signs_inside_the_sql_are_no_parameters(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, "50 % of :it's")
        found = await tx.fetch_val(
            "SELECT id FROM things WHERE name LIKE '50 \\% of :it''s' ESCAPE '\\' AND id = :id",
            {"id": 1},
        )

    assert found == 1


async def test_null_goes_in_and_comes_back(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 1, None)
        await tx.execute("UPDATE things SET number = :number", {"number": None})
        row = await tx.fetch_one("SELECT name, number FROM things")

    assert row is not None
    assert (row["name"], row["number"]) == (None, None)


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
async def test_integers_of_64_bits_come_back(db: Database, number: int) -> None:
    async with db.transaction() as tx:
        await tx.insert("things", {"id": 1, "name": "n", "number": number})

    async with db.read() as tx:
        assert await tx.fetch_val("SELECT number FROM things") == number


async def test_a_parameter_may_stand_in_many_places(db: Database) -> None:
    async with db.transaction() as tx:
        await add(tx, 7, "seven")
        found = await tx.fetch_val(
            "SELECT name FROM things WHERE id = :n AND number = :n AND :n = id", {"n": 7}
        )

    assert found == "seven"


async def test_parameters_that_the_sql_does_not_name_are_left_out(db: Database) -> None:
    async with db.transaction() as tx:
        assert await tx.fetch_val("SELECT 1", {"unused": 5}) == 1


async def test_statements_tell_how_many_rows_they_touched(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.insert_many("things", [{"id": n, "name": "a", "number": n} for n in range(3)])
        updated = await tx.execute("UPDATE things SET name = 'b' WHERE id > 0")
        none = await tx.execute("UPDATE things SET name = 'c' WHERE id > 100")
        ignored = await tx.execute(
            "INSERT INTO things (id) VALUES (1), (9) ON CONFLICT (id) DO NOTHING"
        )
        deleted = await tx.execute("DELETE FROM things")

    assert (updated, none, ignored, deleted) == (2, 0, 1, 4)


async def test_returning_gives_the_rows(db: Database) -> None:
    async with db.transaction() as tx:
        rows = await tx.fetch_all("INSERT INTO things (id) VALUES (1), (2) RETURNING id")

    assert sorted(row["id"] for row in rows) == [1, 2]


async def test_without_rows_there_is_none(db: Database) -> None:
    async with db.read() as tx:
        assert await tx.fetch_all("SELECT * FROM things") == []
        assert await tx.fetch_one("SELECT * FROM things") is None
        assert await tx.fetch_val("SELECT id FROM things") is None


async def test_more_rows_than_one_statement_holds_are_added(db: Database) -> None:
    count = 2 * ROWS_PER_INSERT + 1
    async with db.transaction() as tx:
        await tx.insert_many(
            "things", [{"id": n, "name": f"n{n}", "number": n} for n in range(count)]
        )
        await tx.insert_many("things", [])

    assert len(await names(db)) == count


async def test_a_foreign_key_that_leads_nowhere_is_refused(db: Database) -> None:
    async with failing(Exception, match=r"(?i)foreign key"), db.transaction() as tx:
        await tx.insert("parts", {"id": 1, "thing_id": 99})


async def test_a_value_of_the_wrong_type_is_our_mistake_and_not_the_databases(db: Database) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each driver has its own class
        async with db.transaction() as tx:
            await tx.insert("things", {"id": 1, "name": object(), "number": 1})

    assert not isinstance(raised.value, DatabaseUnavailable)


# ---- away ---------------------------------------------------------------------------------------

DEAD = "postgresql://postgres@127.0.0.1:1/postgres"


async def test_a_dead_server_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        await Database(DEAD).connect()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("wrong", ["/no_such_database", "?user"])
async def test_a_server_that_does_not_let_us_in_is_unavailable(url: str, wrong: str) -> None:
    address = url.rpartition("/")[0]
    target = (
        address + wrong
        if wrong.startswith("/")
        else url.replace("://", "://nobody_of_that_name:wrong@").replace("@postgres@", "@")
    )
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
        thread.join(5)
    assert not any(thread.is_alive() for thread in left)


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
        async with failing(DatabaseUnavailable), asyncio.timeout(1), block():
            pass


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
