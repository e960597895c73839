"""Two small tables to try `Database` on."""

from msgsvc_core.db import Database, Tx

TABLES = (
    "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, number BIGINT)",
    "CREATE TABLE parts (id INTEGER PRIMARY KEY, thing_id INTEGER NOT NULL REFERENCES things (id))",
)


async def names(db: Database) -> list[str]:
    async with db.read() as tx:
        return [row["name"] for row in await tx.fetch_all("SELECT name FROM things ORDER BY id")]


async def add(tx: Tx, number: int, name: str | None = "thing") -> None:
    await tx.insert("things", {"id": number, "name": name, "number": number})
