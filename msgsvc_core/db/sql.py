"""Turns our `:name` parameters into what each driver takes."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

Dialect = Literal["sqlite", "postgresql"]

# A parameter, unless it stands in a quoted literal or is the second colon of a cast.
_PARAMETER = re.compile(r"'(?:[^']|'')*'|(?<!:):([a-z_][a-z0-9_]*)")


@lru_cache(maxsize=2048)
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """`... = :name` as `... = $1`, and the names in the order of their numbers."""
    numbers: dict[str, int] = {}

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        return f"${numbers.setdefault(name, len(numbers) + 1)}"

    return _PARAMETER.sub(replace, sql), tuple(numbers)


def insert_statement(table: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """One INSERT of all `rows`, which have the same columns, and its parameters."""
    columns = list(rows[0])
    values = ", ".join(
        "(" + ", ".join(f":{column}_{number}" for column in columns) + ")"
        for number in range(len(rows))
    )
    params = {
        f"{column}_{number}": row[column] for number, row in enumerate(rows) for column in columns
    }
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values}", params


def in_list(name: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """`(:name_0, :name_1)` and its parameters, for `column IN ...`. `values` is not empty."""
    params = {f"{name}_{number}": value for number, value in enumerate(values)}
    return "(" + ", ".join(f":{key}" for key in params) + ")", params


def joined(expression: str, dialect: Dialect) -> str:
    """The aggregate of a group's texts in one, with commas between them, in no certain order."""
    function = "group_concat" if dialect == "sqlite" else "string_agg"
    return f"{function}({expression}, ',')"
