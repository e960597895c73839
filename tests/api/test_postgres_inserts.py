"""Rows that are inserted together: what they have in common, and what differs, arrives as it was."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.db.postgres_inserts import MOST_SETS
from msgsvc_core.service import Service

COLUMNS = ("project_id", "name", "created_at_ms")


async def kept(
    service: Service, rows: list[tuple[str, str | None, int]]
) -> list[tuple[object, ...]]:
    """The rows as they come back, from a table without a key."""
    async with service.db.transaction() as tx:
        await tx.insert_many("odd", [dict(zip(COLUMNS, row, strict=True)) for row in rows])
        found = await tx.fetch_all("SELECT project_id, name, created_at_ms FROM odd")
        await tx.execute("DELETE FROM odd")
    return sorted((tuple(row) for row in found), key=str)


@pytest.fixture
async def odd(service: Service) -> AsyncIterator[None]:
    async with service.db.transaction() as tx:
        await tx.execute("CREATE TABLE odd (project_id text, name text, created_at_ms bigint)")
    yield
    async with service.db.transaction() as tx:
        await tx.execute("DROP TABLE odd")


@pytest.mark.shared_service
@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", 1)],
        [("a", "x", 1), ("a", "y", 2)],
        [("a", "x", 1), ("b", "x", 1), ("c", "x", 2)],
        [("a", None, 1), ("a", None, 2)],
        [("a", None, 1), ("a", "x", 1)],
        [("a", "x", 1), ("a", "x", 1), ("a", "x", 1)],
    ],
    ids=["one", "one project", "several projects", "nothing", "sometimes nothing", "the same"],
)
async def test_all_rows_arrive(service: Service, rows: list[tuple[str, str | None, int]]) -> None:
    assert await kept(service, rows) == sorted(rows, key=str)


async def test_more_sets_of_columns_than_get_a_statement(service: Service) -> None:
    names = [f"c{number}" for number in range(MOST_SETS + 2)]
    async with service.db.transaction() as tx:
        await tx.execute(f"CREATE TABLE wide ({', '.join(f'{name} integer' for name in names)})")
        for number in range(len(names)):
            # In each pair of rows another column differs.
            same = dict.fromkeys(names, 0)
            await tx.insert_many("wide", [same, {**same, names[number]: 1}])
        total = await tx.fetch_val(f"SELECT SUM({' + '.join(names)}) AS total FROM wide")
        count = await tx.fetch_val("SELECT COUNT(*) AS count FROM wide")
        await tx.execute("DROP TABLE wide")
    assert (total, count) == (len(names), 2 * len(names))
