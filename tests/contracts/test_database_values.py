"""Values on their way into a database and back, over SQLite and PostgreSQL."""

import pytest

from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.db.rows import ROWS_PER_INSERT
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.contracts.things import add, names
from tests.expectations import failing

Backend = SQLiteDatabases | PostgresDatabases


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
