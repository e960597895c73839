"""For migrations: an index of a table that may be partitioned, built while others write."""

import time
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import DBAPIError

from msgsvc_core.db.partitions import LOCK_ATTEMPTS, LOCK_PAUSES_S, LOCK_WAIT_S, lock_key

#: Seconds before another look whether the purge is done with the table.
RETRY_S = 0.1

#: Characters of a name in PostgreSQL.
NAME_LENGTH = 63

_PARTITIONS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(:table) AND NOT EXISTS (
  SELECT FROM pg_inherits a JOIN pg_index x ON x.indexrelid = a.inhrelid
  WHERE a.inhparent = to_regclass(:index) AND x.indrelid = c.oid)
ORDER BY c.relname
"""


def create_index(
    name: str, table: str, columns: Sequence[str], *, where: str | None = None
) -> None:
    """`op.create_index` with `postgresql_concurrently`, also of a partitioned table, where PostgreSQL can't
    do that by itself. The step has `transactional = False`; an interrupted one can be repeated."""
    context = op.get_context()
    if context.dialect.name == "postgresql" and not context.as_sql:
        connection = op.get_bind()
        # Meanwhile the purge adds no partition, and makes none of a plain table.
        _lock(connection, table)
        try:
            if _is_partitioned(connection, table):
                _create_on_partitions(
                    connection, name, table, f"({', '.join(columns)}){_if(where)}"
                )
                return
        finally:
            connection.execute(sa.text(f"SELECT pg_advisory_unlock({lock_key(table)})"))
    condition = None if where is None else sa.text(where)
    op.create_index(
        name,
        table,
        list(columns),
        if_not_exists=True,
        sqlite_where=condition,
        postgresql_where=condition,
        postgresql_concurrently=True,
    )


def _if(where: str | None) -> str:
    return "" if where is None else f" WHERE {where}"


def _lock(connection: sa.Connection, table: str) -> None:
    # Polled: a statement that waits holds a snapshot, which CREATE INDEX CONCURRENTLY waits for.
    attempt = sa.text(f"SELECT pg_try_advisory_lock({lock_key(table)})")
    while not connection.execute(attempt).scalar():
        time.sleep(RETRY_S)


def _is_partitioned(connection: sa.Connection, table: str) -> bool:
    kind = connection.execute(
        sa.text("SELECT relkind::text FROM pg_class WHERE oid = to_regclass(:table)"),
        {"table": table},
    )
    return kind.scalar() == "p"


def _create_on_partitions(connection: sa.Connection, name: str, table: str, what: str) -> None:
    """The index of the table is valid once each partition has its own."""
    _briefly(connection, f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {table} {what}")
    without = connection.execute(sa.text(_PARTITIONS), {"table": table, "index": name})
    for partition in without.scalars().all():
        own = f"{partition}_{name.removeprefix(f'{table}_')}"[:NAME_LENGTH]
        connection.execute(
            sa.text(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {own} ON {partition} {what}")
        )
        _briefly(connection, f"ALTER INDEX {name} ATTACH PARTITION {own}")


def _briefly(connection: sa.Connection, sql: str) -> None:
    """Runs a statement that waits for writers, who wait behind it: up to `LOCK_WAIT_S`, and again later."""
    connection.execute(sa.text(f"SET lock_timeout = '{LOCK_WAIT_S}s'"))
    try:
        for attempt in range(LOCK_ATTEMPTS):
            try:
                connection.execute(sa.text(sql))
                return
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) != "55P03" or attempt + 1 == LOCK_ATTEMPTS:
                    raise
            time.sleep(LOCK_PAUSES_S[min(attempt, len(LOCK_PAUSES_S) - 1)])
    finally:
        connection.execute(sa.text("RESET lock_timeout"))
