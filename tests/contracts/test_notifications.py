"""What `Tx.tell` and `Database.listen` promise: hints, in this process and from others."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.db import Database, postgres_notices
from msgsvc_core.db.notifications import MAX_BYTES
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.work import PATIENCE_S

Backend = SQLiteDatabases | PostgresDatabases

on_postgresql = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)


@pytest.fixture
async def url(backend: Backend) -> AsyncIterator[str]:
    made = await backend.empty()
    yield made
    await backend.give_back(made)


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    database = Database(url, pool_size=2)
    await database.connect()
    yield database
    await database.disconnect()


@pytest.fixture
async def elsewhere(url: str) -> AsyncIterator[Database]:
    """The same database, opened by another process as far as it can tell."""
    database = Database(url, pool_size=2)
    await database.connect()
    yield database
    await database.disconnect()


class Heard:
    """Whoever listens, and what they heard."""

    def __init__(self, db: Database, topic: str = "things") -> None:
        self.texts: list[str] = []
        db.listen(topic, self.texts.append)

    async def hears(self, text: str) -> None:
        async def heard() -> bool:
            return text in self.texts

        await until(heard)


async def tell(db: Database, *texts: str, topic: str = "things") -> None:
    async with db.transaction() as tx:
        for text in texts:
            tx.notify(topic, text)


async def is_listening(db: Database) -> None:
    assert isinstance(db._listener, postgres_notices.PostgresListener)
    async with asyncio.timeout(PATIENCE_S):
        await db._listener.open.wait()


async def listening_processes(db: Database) -> list[int]:
    async with db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
    return [row["pid"] for row in rows]


async def test_what_a_transaction_tells_is_heard_after_its_commit(db: Database) -> None:
    heard = Heard(db)
    async with db.transaction() as tx:
        tx.notify("things", "one two")
        assert heard.texts == []

    await heard.hears("one two")


async def test_only_who_listens_to_the_topic_hears(db: Database) -> None:
    heard, other = Heard(db), Heard(db, "other")

    await tell(db, "one")
    await tell(db, "last", topic="other")

    await other.hears("last")
    assert "last" not in heard.texts
    assert set(other.texts) == {"last"}


async def test_what_is_rolled_back_was_never_told(db: Database) -> None:
    heard = Heard(db)
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as tx:
            tx.notify("things", "undone")
            raise ZeroDivisionError
    async with db.transaction() as tx:
        with pytest.raises(ZeroDivisionError):
            async with tx.savepoint():
                tx.notify("things", "undone")
                raise ZeroDivisionError
        tx.notify("things", "done")

    await heard.hears("done")
    assert "undone" not in heard.texts


async def test_who_raises_keeps_nobody_from_hearing(db: Database) -> None:
    db.listen("things", lambda _text: 1 / 0)
    heard = Heard(db)

    await tell(db, "one")

    await heard.hears("one")


@pytest.mark.parametrize(
    ("topic", "text"), [("two words", "x"), ("", "x"), ("things", "x" * MAX_BYTES), ("t", "\0")]
)
async def test_what_can_not_be_told_is_refused(db: Database, topic: str, text: str) -> None:
    async with db.transaction() as tx:
        with pytest.raises(ValueError, match=r"topic|too long"):
            tx.notify(topic, text)


@on_postgresql
async def test_other_processes_hear(db: Database, elsewhere: Database) -> None:
    heard = Heard(elsewhere)
    await is_listening(elsewhere)

    await tell(db, "one", "x" * (MAX_BYTES - len("things ")))

    await heard.hears("one")
    await heard.hears("x" * (MAX_BYTES - len("things ")))


@on_postgresql
async def test_who_listened_before_the_database_was_opened_hears(db: Database, url: str) -> None:
    late = Database(url, pool_size=2)
    heard = Heard(late)
    await late.connect()
    await is_listening(late)

    await tell(db, "one")

    await heard.hears("one")
    await late.disconnect()


@on_postgresql
async def test_a_connection_that_is_lost_is_opened_again(
    db: Database, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_notices, "RETRY_S", 0.01)
    heard = Heard(elsewhere)
    await is_listening(elsewhere)
    lost = await listening_processes(db)
    async with db.transaction() as tx:
        await tx.fetch_all("SELECT pg_terminate_backend(:pid)", {"pid": lost[0]})

    async def listens_anew() -> bool:
        found = await listening_processes(db)
        return bool(found) and found != lost

    await until(listens_anew)
    await is_listening(elsewhere)
    await tell(db, "after it")
    await heard.hears("after it")


@on_postgresql
async def test_a_connection_is_there_from_the_first_who_listens_until_the_end(
    db: Database, elsewhere: Database
) -> None:
    before = await listening_processes(db)
    Heard(elsewhere)
    Heard(elsewhere, "other")
    await is_listening(elsewhere)
    during = await listening_processes(db)
    await elsewhere.disconnect()

    async def gone() -> bool:
        return not await listening_processes(db)

    await until(gone)
    assert (len(before), len(during)) == (0, 1)
