"""SQL fragments for both databases, and conversion of `:name` parameters to those of the drivers."""

import json
import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Literal

from msgsvc_core.kernel.json import to_json

Dialect = Literal["sqlite", "postgresql"]

# A parameter, except in a quoted literal or after the first colon of a cast.
_PARAMETER = re.compile(r"'(?:[^']|'')*'|(?<!:):([a-z_][a-z0-9_]*)")


@lru_cache(maxsize=2048)
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Replaces `:name` by `$1` and so on; returns the SQL, and the names in the order of their numbers."""
    numbers: dict[str, int] = {}

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        return f"${numbers.setdefault(name, len(numbers) + 1)}"

    return _PARAMETER.sub(replace, sql), tuple(numbers)


#: A statement with numbered parameters, and their values.
Statement = tuple[str, Sequence[Any]]

_NUMBER = re.compile(r"\$(\d+)")


def combined(statements: Sequence[Statement]) -> Statement:
    """One statement for PostgreSQL that executes all of them; `statements` is not empty."""
    texts, values = zip(*statements, strict=True)
    return _combined(texts, tuple(map(len, values))), [each for some in values for each in some]


@lru_cache(maxsize=256)
def _combined(texts: tuple[str, ...], counts: tuple[int, ...]) -> str:
    """`counts` are the numbers of the statements' parameters."""
    renumbered: list[str] = []
    before = 0
    for text, count in zip(texts, counts, strict=True):
        renumbered.append(_NUMBER.sub(partial(_shifted, before), text))
        before += count
    *first, last = renumbered
    named = ", ".join(f"deferred_{number} AS ({text})" for number, text in enumerate(first))
    return f"WITH {named} {last}" if named else last


def _shifted(before: int, number: re.Match[str]) -> str:
    return f"${int(number[1]) + before}"


def in_array(column: str, name: str, dialect: Dialect) -> str:
    """Condition: `column` is one of the values of the parameter `name`, made by `array_param`.

    Unlike `in_list`, the statement is the same for any number of values, so drivers and databases can cache
    it.
    """
    if dialect == "postgresql":
        return f"{column} = ANY(:{name})"
    return f"{column} IN (SELECT value FROM json_each(:{name}))"


def in_query(column: str, query: str, dialect: Dialect) -> str:
    """Condition: `column` is one of the values that `query` selects.

    As an array on PostgreSQL: of a join with a query with LIMIT it expects a tenth of the table.
    """
    if dialect == "postgresql":
        return f"{column} = ANY(ARRAY({query}))"
    return f"{column} IN ({query})"


def limited_delete(table: str, condition: str, dialect: Dialect) -> str:
    """Condition that selects the first `:most` rows of `table` that match `condition`: for a DELETE in
    steps."""
    row = "ctid" if dialect == "postgresql" else "rowid"
    these = f"SELECT {row} FROM {table} WHERE {condition} LIMIT :most"
    if dialect == "postgresql":
        # Partitions of one table have rows of the same places; give the name of one of them.
        return f"({condition}) AND ctid = ANY(ARRAY({these}))"
    return f"rowid IN ({these})"


def array_param(values: Sequence[str], dialect: Dialect) -> Any:
    """The parameter for `in_array`."""
    return list(values) if dialect == "postgresql" else _array(values)


def key_table(columns: Sequence[str], dialect: Dialect) -> str:
    """A table `keys` with text `columns`, from the parameters of `key_params`.

    `FROM <key_table> CROSS JOIN t WHERE t.a = keys.a AND ...` finds the rows of many keys by an index over
    several columns: SQLite executes a CROSS JOIN from left to right.
    """
    if dialect == "postgresql":
        arrays = ", ".join(f":keys_{number}::text[]" for number in range(len(columns)))
        return f"unnest({arrays}) AS keys ({', '.join(columns)})"
    values = ", ".join(
        f"json_extract(value, '$[{number}]') AS {column}" for number, column in enumerate(columns)
    )
    return f"(SELECT {values} FROM json_each(:keys)) AS keys"


def key_params(keys: Sequence[tuple[str | None, ...]], dialect: Dialect) -> dict[str, Any]:
    """The parameters for `key_table`. `keys` is not empty."""
    if dialect == "sqlite":
        return {"keys": _array(keys)}
    return {f"keys_{number}": list(column) for number, column in enumerate(zip(*keys, strict=True))}


def in_list(name: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """`(:name_0, :name_1)` and its parameters, for `column IN ...`. `values` is not empty."""
    params = {f"{name}_{number}": value for number, value in enumerate(values)}
    return "(" + ", ".join(f":{key}" for key in params) + ")", params


def any_of(
    column: str, name: str, values: Sequence[str], dialect: Dialect
) -> tuple[str, dict[str, Any]]:
    """Condition that a column equals one of `values`, and its parameter `name`.

    The statement does not depend on the number of values, so it is prepared once; `in_list` is for a few
    values, or for non-text values.
    """
    if dialect == "postgresql":
        return f"{column} = ANY(:{name})", {name: list(values)}
    return f"{column} IN (SELECT value FROM json_each(:{name}))", {name: _array(values)}


def _array(values: Sequence[Any]) -> str:
    try:
        return to_json(values)
    except ValueError:
        # An unpaired surrogate, which no row can have; the query must not fail.
        return json.dumps(values)


def string_agg(expression: str, dialect: Dialect) -> str:
    """Aggregate that joins a group's texts with commas, in no defined order."""
    function = "group_concat" if dialect == "sqlite" else "string_agg"
    return f"{function}({expression}, ',')"


def for_key_share(dialect: Dialect) -> str:
    """Suffix of a SELECT that keeps its rows, with their keys, until the transaction ends: for rows that
    refer to them. SQLite needs none, since only one transaction writes at a time."""
    return " FOR KEY SHARE" if dialect == "postgresql" else ""


def for_update(dialect: Dialect, of: str | None = None) -> str:
    """Suffix of a SELECT of rows that will be changed or deleted; it waits for `for_key_share` of others.

    `of` is the table whose rows are locked, if there are several.
    """
    if dialect != "postgresql":
        return ""
    return " FOR UPDATE" if of is None else f" FOR UPDATE OF {of}"


def for_no_key_update(dialect: Dialect) -> str:
    """Like `for_update`, for rows whose keys do not change; it does not wait for `for_key_share`."""
    return " FOR NO KEY UPDATE" if dialect == "postgresql" else ""
