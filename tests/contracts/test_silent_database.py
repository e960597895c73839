"""PostgreSQL that says nothing more, as when its host dies: everything ends in its time, with an error."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from msgsvc_core.db import Database, DatabaseUnavailable, WriteBatch, postgres_batches, tx
from msgsvc_core.db import postgres_notices as notices
from msgsvc_core.db import postgres_pool as pool
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.work import PATIENCE_S
from tests.contracts.proxy import Proxy
from tests.contracts.things import TABLES, add, names
from tests.expectations import failing

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)

#: Seconds of each bound in these tests.
BOUND_S = 0.5

#: Seconds for which nothing may hang: four bounds in a row, on a busy machine. The server stays silent, so
#: that what has no bound hangs for ever.
SOON_S = patient(30.0)

#: Seconds of a bound that is to play no part.
NEVER_S = 600.0


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONNECT_S", "STATEMENT_S", "ACQUIRE_S", "GIVE_BACK_S", "CLOSE_S"):
        monkeypatch.setattr(pool, name, BOUND_S)
    for module in (tx, postgres_batches):
        monkeypatch.setattr(module, "UNDO_S", BOUND_S)
    for name in ("CHECK_S", "PATIENCE_S", "RETRY_S"):
        monkeypatch.setattr(notices, name, BOUND_S)


@pytest.fixture
def unbounded_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what must end without the bound of statements, which would end it much later."""
    monkeypatch.setattr(pool, "STATEMENT_S", NEVER_S)


@pytest.fixture
async def proxy(backend: PostgresDatabases) -> AsyncIterator[Proxy]:
    url = await backend.empty()
    async with Proxy(url).running() as running:
        yield running
    await backend.give_back(url)


@pytest.fixture
async def db(proxy: Proxy) -> AsyncIterator[Database]:
    """A database with a pool of two, by way of the proxy."""
    async with opened(proxy) as database:
        async with database.transaction() as made:
            for table in TABLES:
                await made.execute(table)
        yield database


@asynccontextmanager
async def opened(proxy: Proxy) -> AsyncIterator[Database]:
    database = Database(proxy.url, pool_size=2)
    await database.connect()
    try:
        yield database
    finally:
        proxy.go_on()
        await database.disconnect()


@asynccontextmanager
async def unavailable_soon() -> AsyncIterator[None]:
    """The block says that the database is unavailable, and does not hang."""
    started = time.monotonic()
    async with failing(DatabaseUnavailable):
        yield
    assert time.monotonic() - started < SOON_S


async def read(db: Database) -> None:
    async with db.read() as asked:
        await asked.fetch_val("SELECT 1")


async def write(db: Database) -> None:
    async with db.transaction() as changed:
        await add(changed, 1)


async def write_unit(db: Database) -> None:
    unit = WriteBatch()
    unit.insert("things", {"id": 1, "name": "thing", "number": 1})
    await db.write(unit)


async def goes_on(db: Database) -> None:
    """Returns once the whole pool answers again."""

    async def answers() -> bool:
        try:
            async with db.read() as first, db.read() as second:
                return [await one.fetch_val("SELECT 1") for one in (first, second)] == [1, 1]
        except DatabaseUnavailable:
            return False

    await until(answers)


async def _in_time(waiting: Awaitable[object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await waiting


def _is(true: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def asked() -> bool:
        return true()

    return asked


@pytest.mark.parametrize("work", [read, write, write_unit])
async def test_who_asks_a_silent_server_is_told_so(
    db: Database, proxy: Proxy, work: Callable[[Database], Awaitable[None]]
) -> None:
    proxy.fall_silent()
    async with unavailable_soon():
        await work(db)
    proxy.go_on()

    await goes_on(db)


async def test_a_silent_server_can_not_be_opened(proxy: Proxy) -> None:
    proxy.fall_silent()
    async with unavailable_soon():
        await Database(proxy.url).connect()


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_connection_that_a_silent_server_does_not_open_is_unavailable(
    db: Database, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ACQUIRE_S", NEVER_S)
    async with db.read():
        proxy.fall_silent()
        async with unavailable_soon():
            await read(db)
    proxy.go_on()

    await goes_on(db)


@pytest.mark.usefixtures("unbounded_statements")
async def test_who_waits_for_a_connection_is_told_when_none_gets_free(db: Database) -> None:
    async with db.read(), db.read(), unavailable_soon():
        await read(db)

    await goes_on(db)


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_cancelled_read_does_not_wait_for_a_silent_server(
    db: Database, proxy: Proxy
) -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(BOUND_S / 3), db.read() as asked:
            proxy.fall_silent()
            await asked.fetch_val("SELECT 1")
    took_s = time.monotonic() - started
    proxy.go_on()

    assert took_s < SOON_S
    await goes_on(db)


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_cancelled_transaction_does_not_wait_for_a_silent_server(
    db: Database, proxy: Proxy
) -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(BOUND_S / 3), db.transaction() as changed, changed.savepoint():
            await add(changed, 1)
            proxy.fall_silent()
            await asyncio.Event().wait()
    took_s = time.monotonic() - started
    proxy.go_on()

    assert took_s < SOON_S
    await goes_on(db)
    assert await names(db) == []


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_step_that_could_not_be_undone_is_not_committed_with_the_rest(
    db: Database, proxy: Proxy
) -> None:
    async with unavailable_soon(), db.transaction() as changed:
        with pytest.raises(ZeroDivisionError):
            async with changed.savepoint():
                await add(changed, 1)
                proxy.fall_silent()
                raise ZeroDivisionError
        proxy.go_on()

    await goes_on(db)
    assert await names(db) == []


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_batch_that_fails_by_itself_keeps_its_error_beside_a_silent_server(
    db: Database, proxy: Proxy
) -> None:
    async def write(_connection: Any, _units: Sequence[WriteBatch]) -> list[Exception | None]:
        proxy.fall_silent()
        raise ZeroDivisionError

    batches = db._batches
    assert isinstance(batches, postgres_batches.PostgresBatches)
    started = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        async with db._writing(NEVER_S) as connection:
            await batches._in_transaction(connection, write, [WriteBatch()])
    took_s = time.monotonic() - started
    proxy.go_on()

    assert took_s < SOON_S
    await goes_on(db)


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_transaction_that_fails_by_itself_keeps_its_error_beside_a_silent_server(
    db: Database, proxy: Proxy
) -> None:
    started = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as changed:
            await add(changed, 1)
            proxy.fall_silent()
            raise ZeroDivisionError
    took_s = time.monotonic() - started
    proxy.go_on()

    assert took_s < SOON_S
    await goes_on(db)
    assert await names(db) == []


async def test_a_commit_that_is_not_answered_is_an_error_and_its_connection_is_ended(
    db: Database, proxy: Proxy
) -> None:
    told: list[str] = []
    async with unavailable_soon(), db.transaction() as changed:
        process_id = await changed.fetch_val("SELECT pg_backend_pid()")
        changed.on_commit(lambda: told.append("committed"))
        proxy.fall_silent()
    proxy.go_on()

    assert told == []
    await goes_on(db)
    async with db.read() as first, db.read() as second:
        left = [await one.fetch_val("SELECT pg_backend_pid()") for one in (first, second)]
    assert process_id not in left


@pytest.mark.usefixtures("unbounded_statements")
async def test_notices_are_heard_again_after_a_silence(db: Database, proxy: Proxy) -> None:
    heard: list[str] = []
    db.listen("things", heard.append)
    ear = db._listener
    assert isinstance(ear, notices.PostgresListener)
    await _in_time(ear.open.wait())
    proxy.fall_silent()
    await until(_is(lambda: not ear.open.is_set()))
    proxy.go_on()
    await _in_time(ear.open.wait())
    other = Database(proxy.direct_url, pool_size=1)
    await other.connect()
    async with other.transaction() as telling:
        telling.notify("things", "new")
    await other.disconnect()

    await until(_is(lambda: heard == ["new"]))


async def test_notices_are_heard_though_the_server_was_silent_when_asked_to_tell_them(
    db: Database, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen = notices.PostgresListener._listen
    began = asyncio.Event()

    async def listen_in_silence(ear: notices.PostgresListener, raw: Any) -> None:
        if not began.is_set():
            proxy.fall_silent()
            began.set()
            try:
                await listen(ear, raw)
            finally:
                proxy.go_on()
        await listen(ear, raw)

    monkeypatch.setattr(notices.PostgresListener, "_listen", listen_in_silence)
    db.listen("things", lambda _text: None)
    ear = db._listener
    assert isinstance(ear, notices.PostgresListener)

    await _in_time(began.wait())
    async with asyncio.timeout(SOON_S):
        await ear.open.wait()


@pytest.mark.usefixtures("unbounded_statements")
async def test_a_pool_closes_beside_a_silent_server(proxy: Proxy) -> None:
    database = Database(proxy.url, pool_size=2)
    await database.connect()
    async with database.read() as first, database.read() as second:
        for one in (first, second):
            await one.fetch_val("SELECT 1")
    proxy.fall_silent()
    started = time.monotonic()
    await database.disconnect()
    took_s = time.monotonic() - started
    proxy.go_on()
    await database.connect()
    await goes_on(database)
    await database.disconnect()

    assert took_s < SOON_S
