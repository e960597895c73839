"""SQLite as an end of a copy."""

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from msgsvc_core.db.copying.contract import Table, Values
from msgsvc_core.db.errors import CopyRefused


class SQLiteEnd:
    """`connection` is in autocommit mode. Calls block the event loop: a copy is all that its process does."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.name = f"sqlite:{path.absolute()}"

    @classmethod
    def open_alone(cls, path: Path) -> "SQLiteEnd":
        """Keeps other processes out until it is closed. Raises `CopyRefused` if one has the file open.

        A connection in WAL mode holds a lock for as long as it is open, even when idle, and SQLite's
        exclusive mode needs it for itself.
        """
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            # Rows arrive in the order of their references, and were checked when they were written.
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            raise CopyRefused(
                f"another process has {path} open: stop the service first (`fuser {path}` lists them)"
            ) from error
        return cls(connection, path)

    @classmethod
    def open_to_read(cls, path: Path) -> "SQLiteEnd":
        """For a file that nobody writes, such as a backup."""
        url = f"{path.absolute().as_uri()}?mode=ro"
        return cls(sqlite3.connect(url, uri=True, isolation_level=None), path)

    async def close(self) -> None:
        self._connection.close()

    async def check_alone(self) -> None:
        """Nothing to check: since `open_alone` nobody else can open the file."""

    async def table_names(self) -> set[str]:
        found = await self.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        return {name for (name,) in found}

    async def execute(self, sql: str, *values: Any) -> list[Values]:
        return self._connection.execute(sql.replace("$", "?"), values).fetchall()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    async def rows(self, table: Table, after: Values | None = None) -> AsyncGenerator[list[Values]]:
        sql = table.select(after_key=after is not None).replace("$", "?")
        booleans = [at for at, kind in enumerate(table.kinds) if kind == "boolean"]
        with closing(self._connection.execute(sql, after or ())) as cursor:
            while batch := cursor.fetchmany(table.batch_rows):
                yield [_as_read(row, booleans) for row in batch] if booleans else batch

    async def insert(self, table: Table, rows: Sequence[Values]) -> None:
        places = ", ".join("?" * len(table.columns))
        self._connection.executemany(
            f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})",
            rows,
        )

    async def finish(self, tables: Sequence[Table]) -> None:
        """SQLite has no sequences of ours; statistics let it choose indexes."""
        self._connection.execute("ANALYZE")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _as_read(row: Values, booleans: Sequence[int]) -> Values:
    values = list(row)
    for at in booleans:
        if values[at] is not None:
            values[at] = bool(values[at])
    return tuple(values)
