"""Inspects the tables of a database."""

from collections.abc import Sequence

from msgsvc_core.db import Database, Tx

_TABLES = {
    "sqlite": "SELECT name AS name FROM sqlite_master WHERE type = 'table'",
    "postgresql": "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    " AND relkind IN ('r', 'p') AND NOT relispartition",
}
_COLUMNS = {
    "sqlite": "SELECT name AS name FROM pragma_table_info(:table)",
    "postgresql": "SELECT column_name AS name FROM information_schema.columns"
    " WHERE table_schema = 'public' AND table_name = :table ORDER BY ordinal_position",
}
_FIRST_OF_KEY = {
    "sqlite": "SELECT name AS name FROM pragma_table_info(:table) WHERE pk = 1",
    "postgresql": "SELECT a.attname AS name FROM pg_index i"
    " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
    " WHERE i.indisprimary AND i.indrelid = to_regclass(:table)",
}


async def tables_of(db: Database, owner: str) -> dict[str, list[str]]:
    """The owner's tables with their columns, except the version table."""
    async with db.read() as tx:
        names = [row["name"] for row in await tx.fetch_all(_TABLES[tx.dialect])]
        return {
            name: await _columns(tx, name)
            for name in sorted(names)
            if name.startswith(f"{owner}_") and name != f"{owner}_migrations"
        }


async def all_tables(db: Database) -> set[str]:
    """The names of all tables."""
    async with db.read() as tx:
        return {row["name"] for row in await tx.fetch_all(_TABLES[tx.dialect])}


async def first_of_key(db: Database, table: str) -> str | None:
    """The first column of the primary key; None if there is none."""
    async with db.read() as tx:
        found: str | None = await tx.fetch_val(_FIRST_OF_KEY[tx.dialect], {"table": table})
        return found


async def drop_tables(db: Database, names: Sequence[str]) -> None:
    """Drops tables, in an order that their foreign keys allow."""
    async with db.transaction() as tx:
        if tx.dialect == "postgresql":
            await tx.execute(f"DROP TABLE {', '.join(names)} CASCADE")
            return
        await tx.execute("PRAGMA defer_foreign_keys = ON")
        for name in names:
            await tx.execute(f"DROP TABLE {name}")


async def _columns(tx: Tx, table: str) -> list[str]:
    return [row["name"] for row in await tx.fetch_all(_COLUMNS[tx.dialect], {"table": table})]
