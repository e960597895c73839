"""Statements that insert many rows at once, made anew for no number of rows but the first time."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncpg

#: A table, and the columns of the rows.
Shape = tuple[str, tuple[str, ...]]
Values = tuple[Any, ...]

#: Rows of one INSERT on SQLite. Every number of rows is a statement of its own in the connection's
#: cache, so there are not too many of them.
ROWS_PER_INSERT = 64


def shape_of(table: str, row: Mapping[str, Any]) -> Shape:
    """What a row is, for rows of the same kind to be found."""
    return table, tuple(row)


@lru_cache(maxsize=1024)
def values_insert(shape: Shape, count: int) -> str:
    """`INSERT INTO ... VALUES (?, ?), (?, ?)` for SQLite; `flat` gives its parameters."""
    table, columns = shape
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"


def flat(rows: Sequence[Values]) -> list[Any]:
    """The values of `rows`, one after another."""
    return [value for row in rows for value in row]


def parts(rows: Sequence[Values]) -> list[Sequence[Values]]:
    """`rows` in runs of which each fits one statement of SQLite."""
    return [rows[start : start + ROWS_PER_INSERT] for start in range(0, len(rows), ROWS_PER_INSERT)]


def by_column(rows: Sequence[Values]) -> list[Values]:
    """What `UnnestInserts` statements take: for every column, its values in all rows."""
    return list(zip(*rows, strict=True))


class UnnestInserts:
    """`INSERT ... SELECT FROM unnest(...)` for PostgreSQL: one statement for any number of rows."""

    def __init__(self) -> None:
        self._types: dict[Shape, list[str]] = {}
        self._statements: dict[tuple[Shape, ...], str] = {}

    async def get(self, connection: "asyncpg.Connection", *shapes: Shape) -> str:
        """The statement that inserts into all these tables, and so is a transaction by itself.

        Its parameters are the columns of the first shape, then those of the second, and so on.
        """
        statement = self._statements.get(shapes)
        if statement is None:
            inserts: list[str] = []
            taken = 0
            for shape in shapes:
                types = await self._types_of(connection, shape)
                inserts.append(_unnest_insert(shape, types, taken))
                taken += len(types)
            *first, last = inserts
            parts = ", ".join(f"part_{number} AS ({text})" for number, text in enumerate(first))
            statement = f"WITH {parts} {last}" if parts else last
            self._statements[shapes] = statement
        return statement

    async def _types_of(self, connection: "asyncpg.Connection", shape: Shape) -> list[str]:
        """The columns' types, which PostgreSQL itself is asked for once."""
        types = self._types.get(shape)
        if types is None:
            table, columns = shape
            numbers = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
            prepared = await connection.prepare(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({numbers})"
            )
            types = self._types[shape] = [kind.name for kind in prepared.get_parameters()]
        return types


def _unnest_insert(shape: Shape, types: Sequence[str], taken: int) -> str:
    table, columns = shape
    arrays = ", ".join(f"${taken + number}::{kind}[]" for number, kind in enumerate(types, 1))
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
