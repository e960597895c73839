"""Statements for PostgreSQL that insert many rows at once, made anew for no number of rows.

    WITH part_0 AS (INSERT INTO a (x, y) SELECT v.x, $2::text FROM unnest($1::text[]) AS v (x)) ...

What all rows of a column have in common goes over the wire once: rows that are written together are of one
project and one bot as a rule, and asyncpg looks at every value of an array three times.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgsvc_core.db.rows import Shape, Values

if TYPE_CHECKING:
    import asyncpg

#: Sets of columns for a table that get a statement of their own; each is kept ready by every connection.
MOST_SETS = 8

#: Columns, by their places, whose values differ from row to row.
Varying = tuple[int, ...]


class _Part:
    """The rows of one table: which columns vary, and the parameters."""

    __slots__ = ("parameters", "shape", "varying")

    def __init__(self, shape: Shape, varying: Varying, columns: Sequence[Values]) -> None:
        self.shape = shape
        self.varying = varying
        self.parameters: list[Any] = [
            column if number in varying else column[0] for number, column in enumerate(columns)
        ]


class UnnestInserts:
    """`INSERT ... SELECT FROM unnest(...)`: one statement for any number of rows of several tables."""

    def __init__(self) -> None:
        self._types: dict[Shape, list[str]] = {}
        self._sets: dict[Shape, list[Varying]] = {}
        self._statements: dict[tuple[tuple[Shape, Varying], ...], str] = {}

    async def get(
        self, connection: "asyncpg.Connection", rows: Mapping[Shape, Sequence[Values]]
    ) -> tuple[str, list[Any]]:
        """The statement that inserts all of `rows`, and so is a transaction by itself; its parameters."""
        parts = [self._part(shape, found) for shape, found in rows.items()]
        key = tuple((part.shape, part.varying) for part in parts)
        statement = self._statements.get(key)
        if statement is None:
            inserts: list[str] = []
            taken = 0
            for part in parts:
                types = await self._types_of(connection, part.shape)
                inserts.append(_insert(part, types, taken))
                taken += len(types)
            *first, last = inserts
            named = ", ".join(f"part_{number} AS ({text})" for number, text in enumerate(first))
            statement = self._statements[key] = f"WITH {named} {last}" if named else last
        return statement, [value for part in parts for value in part.parameters]

    def _part(self, shape: Shape, rows: Sequence[Values]) -> _Part:
        columns = list(zip(*rows, strict=True))
        varying = tuple(
            number for number, column in enumerate(columns) if column.count(column[0]) < len(column)
        )
        if not varying and len(rows) > 1:
            # Rows that are the same are as many all the same.
            varying = (0,)
        return _Part(shape, self._known_set(shape, varying), columns)

    def _known_set(self, shape: Shape, varying: Varying) -> Varying:
        """`varying`, or, where there are statements enough, more columns."""
        known = self._sets.setdefault(shape, [])
        if varying in known:
            return varying
        if len(known) < MOST_SETS:
            known.append(varying)
            return varying
        wider = [columns for columns in known if set(varying) < set(columns)]
        return min(wider, key=len, default=tuple(range(len(shape[1]))))

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


def _insert(part: _Part, types: Sequence[str], taken: int) -> str:
    table, columns = part.shape
    selected, arrays, names = [], [], []
    for place, (column, kind) in enumerate(zip(columns, types, strict=True)):
        parameter = f"${taken + place + 1}::{kind}"
        if place in part.varying:
            selected.append(f"v.{column}")
            arrays.append(f"{parameter}[]")
            names.append(column)
        else:
            selected.append(parameter)
    source = f" FROM unnest({', '.join(arrays)}) AS v ({', '.join(names)})" if names else ""
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(selected)}{source}"
