"""Rows that are inserted together, and the statement that does so on SQLite."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

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
