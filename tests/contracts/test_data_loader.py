"""What `DataLoader` promises: one query for many who ask at once, and never an old answer."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.db.sql import array_param, in_array, key_params, key_table
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases

Backend = SQLiteDatabases | PostgresDatabases

#: A question after whose key the query fails.
BROKEN = "broken"


@pytest.fixture
async def db(backend: Backend) -> AsyncIterator[Database]:
    url = await backend.empty()
    database = Database(url, pool_size=2)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute("CREATE TABLE things (owner TEXT, name TEXT, PRIMARY KEY (owner, name))")
        await tx.insert_many("things", [{"owner": "me", "name": f"n{n}"} for n in range(100)])
    yield database
    await database.disconnect()
    await backend.give_back(url)


class Things:
    """A lookup of names, and the keys of each of its queries."""

    def __init__(self, db: Database) -> None:
        self.queries: list[list[str]] = []
        self.asked = asyncio.Event()
        self.lookup = DataLoader(db, self._load)

    async def _load(self, tx: Tx, keys: Sequence[str]) -> Mapping[str, str]:
        self.queries.append(list(keys))
        self.asked.set()
        if BROKEN in keys:
            raise ZeroDivisionError
        rows = await tx.fetch_all(
            f"SELECT name FROM things WHERE {in_array('name', 'names', tx.dialect)}",
            {"names": array_param(keys, tx.dialect)},
        )
        return {row["name"]: row["name"].upper() for row in rows}


async def test_who_asks_at_once_is_answered_by_one_query(db: Database) -> None:
    things = Things(db)

    found = await asyncio.gather(*(things.lookup.get(f"n{n % 50}") for n in range(100)))

    assert found == [f"N{n % 50}" for n in range(100)]
    assert [len(keys) for keys in things.queries] == [50]


async def test_what_is_not_there_is_none(db: Database) -> None:
    assert await Things(db).lookup.get("nowhere") is None


async def test_who_asks_while_a_query_runs_gets_one_that_began_later(db: Database) -> None:
    things = Things(db)
    first = asyncio.create_task(things.lookup.get("new"))
    await things.asked.wait()
    async with db.transaction() as tx:
        await tx.insert("things", {"owner": "me", "name": "new"})

    assert await things.lookup.get("new") == "NEW"
    await first
    assert len(things.queries) == 2


async def test_a_key_at_fault_fails_alone(db: Database) -> None:
    things = Things(db)
    found = await asyncio.gather(
        things.lookup.get("n1"), things.lookup.get(BROKEN), return_exceptions=True
    )

    assert found[0] == "N1"
    assert isinstance(found[1], ZeroDivisionError)
    assert await things.lookup.get("n1") == "N1"


async def test_who_is_cancelled_leaves_the_others_their_answers(db: Database) -> None:
    things = Things(db)
    tasks = [asyncio.create_task(things.lookup.get(f"n{n}")) for n in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)

    assert found[1::2] == [f"N{n}" for n in range(1, 20, 2)]


async def test_in_a_transaction_it_sees_what_that_wrote(db: Database) -> None:
    things = Things(db)
    async with db.transaction() as tx:
        await tx.insert("things", {"owner": "me", "name": "mine"})

        assert await things.lookup.get("mine", tx) == "MINE"


async def test_keys_of_two_columns_are_found_by_both(db: Database) -> None:
    keys = [("me", "n1"), ("you", "n2"), ("me", 'it\'s "odd"')]
    async with db.transaction() as tx:
        await tx.insert("things", {"owner": "me", "name": 'it\'s "odd"'})
        rows = await tx.fetch_all(
            f"SELECT t.name FROM {key_table(('owner', 'name'), tx.dialect)}"
            " CROSS JOIN things t WHERE t.owner = keys.owner AND t.name = keys.name ORDER BY t.name",
            key_params(keys, tx.dialect),
        )

    assert [row["name"] for row in rows] == ['it\'s "odd"', "n1"]
