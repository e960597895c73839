"""Bulk INSERT statements for PostgreSQL, one prepared statement for any number of rows.

WITH part_0 AS (INSERT INTO a (x, y) SELECT v.x, $2::text FROM unnest($1::text[]) AS v (x)) ...

Values that all rows share are sent once: rows written together usually belong to one project and bot, and
asyncpg inspects every array element three times.

Rows may depend on claims, which are rows that must be new:

WITH patience AS (...), won AS (INSERT ... FROM unnest(...), patience ON CONFLICT DO NOTHING RETURNING k),
kept AS (SELECT claim_no_ FROM unnest(...) WITH ORDINALITY ... JOIN won ...),
part_0 AS (INSERT ... WHERE claim_no_ = 0 OR claim_no_ IN (SELECT claim_no_ FROM kept))
SELECT claim_no_ FROM kept
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgsvc_core.db.rows import Shape, Values
from msgsvc_core.kernel.values import value_object

if TYPE_CHECKING:
    import asyncpg

#: Maximum sets of varying columns per table with a separate statement; every connection prepares each.
MOST_SETS = 8

#: Indexes of the columns whose values differ between rows.
Varying = tuple[int, ...]

#: The properties of a statement's parts that determine its text.
Kinds = tuple[tuple[Shape, Varying], ...]


class _Part:
    """The rows of one table: which columns vary, and the parameters."""

    __slots__ = ("parameters", "shape", "varying")

    def __init__(self, shape: Shape, varying: Varying, columns: Sequence[Values]) -> None:
        self.shape = shape
        self.varying = varying
        self.parameters: list[Any] = [
            column if number in varying else column[0] for number, column in enumerate(columns)
        ]


@value_object
class Claims:
    """Rows of one table that must be new, by the unique index over `key`. Their keys are distinct."""

    shape: Shape
    key: tuple[str, ...]
    rows: Sequence[Values]


class UnnestInserts:
    """`INSERT ... SELECT FROM unnest(...)`: one statement for any number of rows of several tables."""

    def __init__(self) -> None:
        self._types: dict[Shape, list[str]] = {}
        self._sets: dict[Shape, list[Varying]] = {}
        self._statements: dict[Kinds, str] = {}
        #: Also by the columns of the claims' key and the lock timeout; the first part is the claims.
        self._claiming_statements: dict[tuple[tuple[str, ...], int, Kinds], str] = {}

    async def get(
        self, connection: "asyncpg.Connection", rows: Mapping[Shape, Sequence[Values]]
    ) -> tuple[str, list[Any]]:
        """The statement that inserts all `rows` as an implicit transaction, and its parameters."""
        parts = [self._part(shape, columns_of(found)) for shape, found in rows.items()]
        key = tuple((part.shape, part.varying) for part in parts)
        statement = self._statements.get(key)
        if statement is None:
            inserts: list[str] = []
            taken = 0
            for part in parts:
                inserts.append(_insert(part, await self._types_of(connection, part.shape), taken))
                taken += len(part.parameters)
            *first, last = inserts
            named = ", ".join(f"part_{number} AS ({text})" for number, text in enumerate(first))
            statement = self._statements[key] = f"WITH {named} {last}" if named else last
        return statement, [value for part in parts for value in part.parameters]

    async def get_claiming(
        self,
        connection: "asyncpg.Connection",
        claims: Claims,
        rows: Mapping[Shape, Sequence[Values]],
        wait_ms: int,
    ) -> tuple[str, list[Any]]:
        """The statement that inserts `claims`, and those of `rows` whose claim was new; and its parameters.

        The last value of each row is the number of its claim, from 1; 0 if it depends on none. The statement
        returns the numbers of new claims, as `claim_no_`. A claim waits up to `wait_ms` milliseconds for
        another transaction that is writing the same row.
        """
        names = claims.shape[1]
        places = tuple(names.index(column) for column in claims.key)
        claim = self._part(claims.shape, columns_of(claims.rows), always=places)
        parts: list[_Part] = []
        for shape, found in rows.items():
            *columns, numbers = columns_of(found)
            part = self._part(shape, columns)
            part.parameters.append(numbers)
            parts.append(part)
        kinds = tuple((part.shape, part.varying) for part in (claim, *parts))
        statement = self._claiming_statements.get((claims.key, wait_ms, kinds))
        if statement is None:
            statement = await self._claiming(connection, claims.key, claim, parts, wait_ms)
            self._claiming_statements[claims.key, wait_ms, kinds] = statement
        return statement, [value for part in (claim, *parts) for value in part.parameters]

    async def _claiming(
        self,
        connection: "asyncpg.Connection",
        key: tuple[str, ...],
        claim: _Part,
        parts: Sequence[_Part],
        wait_ms: int,
    ) -> str:
        types = await self._types_of(connection, claim.shape)
        places = [claim.shape[1].index(column) for column in key]
        asked = ", ".join(f"${place + 1}::{types[place]}[]" for place in places)
        of_key = ", ".join(key)
        insert = _insert(claim, types, 0, beside="patience")
        named = [
            f"patience AS MATERIALIZED (SELECT set_config('lock_timeout', '{wait_ms}', true))",
            f"won AS ({insert} ON CONFLICT DO NOTHING RETURNING {of_key})",
            f"asked AS (SELECT * FROM unnest({asked}) WITH ORDINALITY AS a ({of_key}, claim_no_))",
            f"kept AS (SELECT asked.claim_no_ FROM asked JOIN won USING ({of_key}))",
        ]
        taken = len(claim.parameters)
        for number, part in enumerate(parts):
            insert = _insert(
                part,
                await self._types_of(connection, part.shape),
                taken,
                where="v.claim_no_ = 0 OR v.claim_no_ IN (SELECT kept.claim_no_ FROM kept)",
            )
            named.append(f"part_{number} AS ({insert})")
            taken += len(part.parameters)
        return f"WITH {', '.join(named)} SELECT claim_no_ FROM kept"

    def _part(self, shape: Shape, columns: Sequence[Values], always: Varying = ()) -> _Part:
        """`always` are columns that are treated as varying."""
        varying = tuple(
            number
            for number, column in enumerate(columns)
            if number in always or column.count(column[0]) < len(column)
        )
        if not varying and len(columns[0]) > 1:
            # Identical rows: one array is needed for their number.
            varying = (0,)
        return _Part(shape, self._known_set(shape, varying), columns)

    def _known_set(self, shape: Shape, varying: Varying) -> Varying:
        """`varying`, or a superset of it once the table has `MOST_SETS` statements."""
        known = self._sets.setdefault(shape, [])
        if varying in known:
            return varying
        if len(known) < MOST_SETS:
            known.append(varying)
            return varying
        wider = [columns for columns in known if set(varying) < set(columns)]
        return min(wider, key=len, default=tuple(range(len(shape[1]))))

    async def _types_of(self, connection: "asyncpg.Connection", shape: Shape) -> list[str]:
        """The columns' types, queried from PostgreSQL once."""
        types = self._types.get(shape)
        if types is None:
            table, columns = shape
            numbers = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
            prepared = await connection.prepare(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({numbers})", name=""
            )
            types = self._types[shape] = [kind.name for kind in prepared.get_parameters()]
        return types


def columns_of(rows: Sequence[Values]) -> list[Values]:
    """The values of each column."""
    return list(zip(*rows, strict=True))


def _insert(
    part: _Part, types: Sequence[str], taken: int, *, beside: str = "", where: str = ""
) -> str:
    """The INSERT of a part, whose parameters come after `taken` others.

    `beside` is a table of one row that is read first. `where` is a condition on `v.claim_no_`, whose array is
    the part's last parameter.
    """
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
    if where:
        arrays.append(f"${taken + len(columns) + 1}::bigint[]")
        names.append("claim_no_")
    sources = [f"unnest({', '.join(arrays)}) AS v ({', '.join(names)})"] if names else []
    if beside:
        sources.append(beside)
    source = f" FROM {', '.join(sources)}" if sources else ""
    condition = f" WHERE {where}" if where else ""
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(selected)}{source}{condition}"
