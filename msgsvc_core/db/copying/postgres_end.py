"""PostgreSQL as an end of a copy."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from msgsvc_core.db.copying.contract import Table, Values
from msgsvc_core.db.errors import CopyRefused
from msgsvc_core.db.partitions import EXPIRED
from msgsvc_core.db.postgres_pool import open_session

#: Name of a copy's own session in `pg_stat_activity`.
SESSION = "msgsvc-copy"

#: Key of the advisory lock that a copy's target holds; an arbitrary constant.
COPY_LOCK = 7_136_742_002


class PostgresEnd:
    """One session. As a source it sees one snapshot from the first query to the end."""

    def __init__(self, connection: Any, name: str, held: AsyncExitStack) -> None:
        self._connection = connection
        self._held = held
        self.name = name

    @classmethod
    async def open(cls, url: str, *, is_source: bool, has_sessions: bool = False) -> "PostgresEnd":
        """A source is read as of now, whoever writes meanwhile; a target has one copy at a time.

        Raises `DatabaseUnavailable`, and `CopyRefused` if another copy is writing to this database.
        """
        async with AsyncExitStack() as held:
            raw = await held.enter_async_context(
                open_session(url, SESSION, has_sessions=has_sessions)
            )
            if not is_source:
                if not await raw.fetchval("SELECT pg_try_advisory_lock($1)", COPY_LOCK):
                    raise CopyRefused(
                        "another copy to this database is running: wait for it, or end it"
                    )
            else:
                await held.enter_async_context(
                    raw.transaction(isolation="repeatable_read", readonly=True)
                )
            return cls(raw, _name(url), held.pop_all())

    async def close(self) -> None:
        await self._held.aclose()

    async def check_alone(self) -> None:
        # The service names its sessions, and each of its processes has at least one as long as it runs.
        # Within a transaction, such as that of a snapshot, PostgreSQL would repeat the first answer.
        await self._connection.execute("SELECT pg_stat_clear_snapshot()")
        others = await self._connection.fetch(
            "SELECT application_name || coalesce(' from ' || host(client_addr), '')"
            " FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND application_name LIKE 'msgsvc%' ORDER BY 1"
        )
        if others:
            names = ", ".join(sorted({row[0] for row in others}))
            raise CopyRefused(f"{self.name} is in use by {names}: stop the service first")

    async def table_names(self) -> set[str]:
        # Partitions are read and written by the name of their table.
        found = await self.execute(
            "SELECT relname FROM pg_class c WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition"
            " AND obj_description(c.oid, 'pg_class') IS DISTINCT FROM $1",
            EXPIRED,
        )
        return {name for (name,) in found}

    async def execute(self, sql: str, *values: Any) -> list[Values]:
        return [tuple(row) for row in await self._connection.fetch(sql, *values)]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        async with self._connection.transaction():
            yield

    async def rows(self, table: Table, after: Values | None = None) -> AsyncGenerator[list[Values]]:
        sql = table.select(after_key=after is not None)
        # A cursor needs a transaction; within that of a snapshot it is a savepoint.
        async with self._connection.transaction():
            cursor = await self._connection.cursor(sql, *(after or ()))
            while batch := await cursor.fetch(table.batch_rows):
                yield [tuple(row) for row in batch]

    async def insert(self, table: Table, rows: Sequence[Values]) -> None:
        await self._connection.copy_records_to_table(
            table.name, records=rows, columns=table.columns
        )

    async def finish(self, tables: Sequence[Table]) -> None:
        """Sequences continue behind the greatest value. Statistics let it choose indexes."""
        for table in tables:
            for column, kind in zip(table.columns, table.kinds, strict=True):
                if kind == "integer":
                    await self._set_sequence(table.name, column)
        await self._connection.execute("ANALYZE")

    async def _set_sequence(self, table: str, column: str) -> None:
        sequence = await self._connection.fetchval(
            "SELECT pg_get_serial_sequence($1, $2)", table, column
        )
        if sequence is not None:
            await self._connection.execute(
                f"SELECT setval('{sequence}', max({column})) FROM {table} HAVING count(*) > 0"
            )


def _name(url: str) -> str:
    parsed = urlsplit(url)
    where = parsed.netloc.rpartition("@")[2]
    return f"postgresql://{where}{parsed.path}"
