"""Deletes, saves and restores the rows of a PostgreSQL test database."""

from graphlib import TopologicalSorter

import asyncpg

#: The schema in which rows are saved. It is not in a service's search path.
_ASIDE = "kept_for_tests"

_TABLES = """
    SELECT relname AS tablename FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND relname NOT LIKE '%\\_migrations'
"""

_REFERENCES = """
    SELECT DISTINCT conrelid::regclass::text AS referring, confrelid::regclass::text AS referred
    FROM pg_constraint WHERE contype = 'f' AND conrelid <> confrelid
"""


#: Most tests write to few tables; the file of a table never written to is empty. Deleted rows leave their
#: space, so this never misses a table with rows.
_WRITTEN = f"{_TABLES} AND pg_relation_size(oid) > 0"


async def empty_tables(connection: asyncpg.Connection) -> None:
    """Deletes all rows except those of the version tables."""
    tables = [row["tablename"] for row in await connection.fetch(_WRITTEN)]
    if not tables:
        return
    try:
        async with connection.transaction():
            # In any order: our foreign keys cascade.
            await connection.execute(";".join(f"DELETE FROM {table}" for table in tables))
    except asyncpg.ForeignKeyViolationError:
        # A plugin's doesn't. This always works, but takes a hundred times as long.
        await connection.execute(f"TRUNCATE {', '.join(tables)} CASCADE")


async def keep_rows(connection: asyncpg.Connection) -> None:
    """Copies all rows to the saved schema."""
    tables = [row["tablename"] for row in await connection.fetch(_TABLES)]
    async with connection.transaction():
        await connection.execute(f"CREATE SCHEMA {_ASIDE}")
        for table in tables:
            if await connection.fetchval(f"SELECT EXISTS (SELECT FROM public.{table})"):
                await connection.execute(f"CREATE TABLE {_ASIDE}.{table} AS TABLE public.{table}")


async def restore_rows(connection: asyncpg.Connection) -> None:
    """Copies the saved rows into the empty tables."""
    kept = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", _ASIDE)
    references = [tuple(row) for row in await connection.fetch(_REFERENCES)]
    tables = _referred_first([row["tablename"] for row in kept], references)
    async with connection.transaction():
        await connection.execute(
            ";".join(f"INSERT INTO public.{one} SELECT * FROM {_ASIDE}.{one}" for one in tables)
        )


def _referred_first(tables: list[str], references: list[tuple[str, str]]) -> list[str]:
    """The tables, each after those that its foreign keys reference."""
    sorter = TopologicalSorter[str](dict.fromkeys(tables, ()))
    for referring, referred in references:
        if referring in tables and referred in tables:
            sorter.add(referring, referred)
    return list(sorter.static_order())
