"""The tables of a database, as its catalogue describes them."""

from collections.abc import Collection, Mapping
from graphlib import TopologicalSorter
from typing import Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy import types as sql_types

from msgsvc_core.db.copying.contract import Kind, Table
from msgsvc_core.db.errors import CopyRefused
from msgsvc_core.db.migrations import new_engine
from msgsvc_core.db.partitions import EXPIRED

_KINDS: tuple[tuple[type[Any], Kind], ...] = (
    # A boolean first: it has other base classes too.
    (sql_types.Boolean, "boolean"),
    (sql_types.Integer, "integer"),
    (sql_types.LargeBinary, "bytes"),
    (sql_types.String, "text"),
)


async def read_tables(url: str, left_out: Collection[str]) -> dict[str, Table]:
    """All tables by name, each after those that its foreign keys refer to, without the columns `left_out`.

    Raises `CopyRefused` for a table without a primary key, by which rows are found again, and for a column
    whose type no copy has been tested with.
    """
    engine = new_engine(url)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(_read, left_out)
    finally:
        await engine.dispose()


def _read(connection: Connection, left_out: Collection[str]) -> dict[str, Table]:
    catalogue, aside = inspect(connection), _partitions(connection)
    keys = catalogue.get_multi_pk_constraint()
    references = {
        name: {each["referred_table"] for each in found} - {name}
        for (_, name), found in catalogue.get_multi_foreign_keys().items()
    }
    columns = {name: found for (_, name), found in catalogue.get_multi_columns().items()}
    key_of = {
        name: tuple(found["constrained_columns"]) for (_, name), found in keys.items() if found
    }
    return {
        name: _table(name, columns[name], key_of.get(name, ()), left_out)
        for name in TopologicalSorter(dict(sorted(references.items()))).static_order()
        if name not in aside
    }


def _partitions(connection: Connection) -> set[str]:
    """Tables that are a part of another one, or were until they expired."""
    if connection.dialect.name != "postgresql":
        return set()
    found = connection.execute(
        text(
            "SELECT relname FROM pg_class c WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind = 'r' AND (relispartition OR obj_description(c.oid, 'pg_class') = :expired)"
        ),
        {"expired": EXPIRED},
    )
    return set(found.scalars())


def _table(name: str, columns: Any, key: tuple[str, ...], left_out: Collection[str]) -> Table:
    if not key:
        raise CopyRefused(f"{name}: a table without a primary key can't be copied in parts")
    stored: Mapping[str, Any] = {
        each["name"]: each["type"]
        for each in columns
        if "computed" not in each and f"{name}.{each['name']}" not in left_out
    }
    return Table(name, tuple(stored), tuple(_kind(name, *one) for one in stored.items()), key)


def _kind(table: str, column: str, found: Any) -> Kind:
    for base, kind in _KINDS:
        if isinstance(found, base):
            return kind
    raise CopyRefused(f"{table}.{column}: no copy knows the type {found}")
