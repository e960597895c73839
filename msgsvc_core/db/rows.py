"""Rows that are inserted together, and SQLite's INSERT statement for them."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

#: A table, and the columns of its rows.
Shape = tuple[str, tuple[str, ...]]
Values = tuple[Any, ...]

#: Maximum rows of one INSERT on SQLite. Every number of rows is a separate statement in the connection's
#: cache, so it is limited.
ROWS_PER_INSERT = 64


def shape_of(table: str, row: Mapping[str, Any]) -> Shape:
    """The shape of a row, by which rows are grouped."""
    return table, tuple(row)


@lru_cache(maxsize=256)
def values_of(shape: Shape) -> Callable[[Mapping[str, Any]], Values]:
    """A function that returns the values of a row of that shape."""
    columns = shape[1]
    if len(columns) == 1:
        # `itemgetter` returns a single value without a tuple.
        return lambda row: (row[columns[0]],)
    return itemgetter(*columns)


@lru_cache(maxsize=1024)
def values_insert(shape: Shape, count: int) -> str:
    """`INSERT INTO ... VALUES (?, ?), (?, ?)` for SQLite; `flat` returns its parameters."""
    table, columns = shape
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"


def flat(rows: Sequence[Values]) -> list[Any]:
    """The values of `rows` in one list."""
    return list(chain.from_iterable(rows))


def parts(rows: Sequence[Values]) -> list[Sequence[Values]]:
    """`rows` in chunks that each fit one statement of SQLite."""
    return [rows[start : start + ROWS_PER_INSERT] for start in range(0, len(rows), ROWS_PER_INSERT)]
