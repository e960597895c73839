"""Partitions of a large PostgreSQL table, by ranges of its ids, which begin with the time.

A partition is one table, so that its rows are dropped at once. The last partition has no end: an id beyond
all ends would be refused otherwise, and beside a default partition none can be detached without a lock that
stops everybody. Some time ahead it is given an end, and the next one is added. Ids before the second
partition always have the first one.

What is under way stands in the catalogue alone, so that whoever comes next finishes it.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog

from msgsvc_core.db.database import Database
from msgsvc_core.db.errors import Deadlock, LockTimeout, is_refusal, named_errors
from msgsvc_core.db.retention import PartitionRule
from msgsvc_core.db.sessions import OTHER_SESSIONS
from msgsvc_core.db.tx import Tx
from msgsvc_core.kernel.ids import creation_ms, earliest_id

#: Seconds that a change waits for a table which a transaction uses. All later users wait behind it meanwhile,
#: so it gives way and tries again. Less than claims wait (0.1), so that no request gets a 425.
LOCK_WAIT_S = 0.05
LOCK_ATTEMPTS = 50
LOCK_PAUSES_S = (0.1, 0.2, 0.5, 1.0)

#: Seconds that detaching waits for transactions which may still read the partition. Nobody waits behind it.
DETACH_WAIT_S = 30.0

#: The comment of a partition that is about to be detached and dropped: a table that an operator has detached
#: does not have it, and stays.
EXPIRED = "msgsvc: past its retention"

_BOUND = re.compile(r"FROM \((MINVALUE|'(?P<start>\w+)')\) TO \((MAXVALUE|'(?P<end>\w+)')\)$")
_ID = re.compile(r"'(\w+_\w{22})'")

_PARTITIONS = """
SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound, i.inhdetachpending AS is_pending
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1)
"""

#: What a partitioned table would not take over from the table that becomes its first partition.
_OBSTACLES = """
SELECT CASE
  WHEN NOT pg_has_role(c.relowner, 'USAGE') THEN 'it belongs to another role'
  WHEN EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) THEN 'it has a trigger'
  WHEN EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) THEN 'it has a policy'
  WHEN EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = c.oid) THEN 'it is published'
  WHEN EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND c.oid IN (conrelid, confrelid))
    THEN 'it has a foreign key'
  WHEN EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent)) THEN 'it has an heir'
  WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attacl IS NOT NULL)
    THEN 'rights were granted on its columns'
  WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND NOT indisvalid)
    THEN 'it has an unfinished index'
  WHEN EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = c.oid AND r.ev_class <> c.oid)
    THEN 'a view reads it'
END FROM pg_class c WHERE c.oid = to_regclass($1)
"""

_INDEXES = """
SELECT c.relname AS name, pg_get_indexdef(c.oid) AS definition, k.conname AS key,
  pg_get_constraintdef(k.oid) AS key_definition
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.contype IN ('p', 'u')
WHERE i.indrelid = to_regclass($1) ORDER BY c.relname
"""

_GRANTS = """
SELECT a.privilege_type AS right, a.is_grantable AS may_grant,
  CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS role
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass($1) AND a.grantee <> c.relowner
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Partition:
    """Rows from the id `start` on and before `end`; None where there is no such limit."""

    name: str
    start: str | None
    end: str | None
    is_pending: bool = False

    @property
    def start_ms(self) -> int:
        return 0 if self.start is None else creation_ms(self.start)

    def is_past(self, before: str) -> bool:
        """Whether all its ids are below `before`."""
        return self.end is not None and self.end <= before


class PartitionedTable:
    """The partitions of one table, changed by one session at a time. `raw` is a session of asyncpg."""

    def __init__(self, raw: Any, rule: PartitionRule) -> None:
        self._raw = raw
        self._rule = rule
        self._table, self._column = rule.table, rule.column

    async def is_partitioned(self) -> bool:
        kind = await self._raw.fetchval(
            "SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1)", self._table
        )
        return bool(kind == "p")

    async def partitions(self) -> list[Partition]:
        """In the order of their ids."""
        rows = await self._raw.fetch(_PARTITIONS, self._table)
        return _in_order(rows)

    async def size_mib(self) -> int:
        """With its indexes."""
        size: int = await self._raw.fetchval(
            "SELECT pg_total_relation_size(to_regclass($1)) >> 20", self._table
        )
        return size

    async def obstacle(self, session: str) -> str | None:
        """Why the table can't be partitioned. `session` is the name of this release's sessions: an earlier
        release deletes old rows by their place, and places are not unique in a partitioned table."""
        if others := await self._raw.fetch(OTHER_SESSIONS.replace(":name", "$1"), session):
            return f"{others[0]['session']} uses the database"
        found: str | None = await self._raw.fetchval(_OBSTACLES, self._table)
        return found

    async def convert(self) -> None:
        """Makes the table the only partition of a new one of its name, with all its rows where they are."""
        await self._with_locks(partial(self._swap, self._first))
        log.info("table_partitioned", table=self._table)

    async def _swap(self, first: str) -> None:
        table = self._table
        await self._raw.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        indexes = await self._raw.fetch(_INDEXES, table)
        grants = await self._raw.fetch(_GRANTS, table)
        await self._raw.execute(f"ALTER TABLE {table} RENAME TO {first}")
        for number, index in enumerate(indexes):
            await self._raw.execute(f"ALTER INDEX {index['name']} RENAME TO {first}_i{number}")
        await self._raw.execute(
            f"CREATE TABLE {table} (LIKE {first} INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE"
            f" INCLUDING COMMENTS INCLUDING CONSTRAINTS) PARTITION BY RANGE ({self._column})"
        )
        for index in indexes:
            await self._raw.execute(
                index["definition"]
                if index["key"] is None
                else f"ALTER TABLE {table} ADD CONSTRAINT {index['key']} {index['key_definition']}"
            )
        for grant in grants:
            option = " WITH GRANT OPTION" if grant["may_grant"] else ""
            await self._raw.execute(f"GRANT {grant['right']} ON {table} TO {grant['role']}{option}")
        # All rows belong into it, which no scan has to show.
        await self._raw.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"
        )

    async def split(self, now_ms: int) -> bool:
        """Ends the last partition a period ahead and adds the next one, unless the last is to begin later
        still; returns whether it did. Finishes what was begun."""
        period_ms = self._rule.period_ms
        last = (await self.partitions())[-1]
        limit = f"{last.name}_until"
        known = await self._raw.fetchval(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass($1)"
            " AND conname = $2",
            last.name,
            limit,
        )
        end = None if known is None else _ID.findall(known)[-1]
        if end is not None and (not period_ms or creation_ms(end) < now_ms + period_ms // 2):
            # It was added long ago, and would refuse what is written after it.
            await self._drop_limit(last.name, limit)
            end = None
        if not period_ms or (end is None and last.start_ms > now_ms + period_ms):
            return False
        if end is None:
            least_ms = max(now_ms + period_ms, last.start_ms)
            end = earliest_id(self._rule.prefix, (least_ms // period_ms + 1) * period_ms)
            await self._with_locks(partial(self._add_limit, last, limit, end))
        try:
            # It reads the partition, which blocks nobody. With it ATTACH need not read, while all wait.
            await self._raw.execute(f"ALTER TABLE {last.name} VALIDATE CONSTRAINT {limit}")
        except Exception as error:
            if is_refusal(error):
                log.warning("partition_has_later_rows", table=self._table, end=end)
                await self._drop_limit(last.name, limit)
                return False
            raise
        await self._with_locks(partial(self._end, last, limit, end))
        log.info("partition_added", table=self._table, start=end)
        return True

    async def _add_limit(self, last: Partition, limit: str, end: str) -> None:
        column = self._column
        since = "" if last.start is None else f"{column} >= '{last.start}' AND "
        await self._raw.execute(
            f"ALTER TABLE {last.name} ADD CONSTRAINT {limit} CHECK ({since}{column} < '{end}') NOT VALID"
        )

    async def _drop_limit(self, name: str, limit: str) -> None:
        drop = f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {limit}"
        await self._with_locks(partial(self._raw.execute, drop))

    async def _end(self, last: Partition, limit: str, end: str) -> None:
        # The table alone first, which everybody locks before a partition.
        await self._raw.execute(f"LOCK TABLE ONLY {self._table} IN ACCESS EXCLUSIVE MODE")
        await self._raw.execute(f"ALTER TABLE {self._table} DETACH PARTITION {last.name}")
        await self._attach(last.name, last.start, end)
        await self._raw.execute(f"ALTER TABLE {last.name} DROP CONSTRAINT {limit}")
        await self._add(self._name(end), end, None)

    async def drop(self, partition: Partition) -> None:
        """Detaches a partition while others go on with the table, and drops it."""
        if not partition.is_pending:
            mark = f"COMMENT ON TABLE {partition.name} IS '{EXPIRED}'"
            await self._with_locks(partial(self._raw.execute, mark))
        how = "FINALIZE" if partition.is_pending else "CONCURRENTLY"
        await self._raw.execute(f"SET lock_timeout = '{DETACH_WAIT_S}s'")
        try:
            with named_errors():
                await self._raw.execute(
                    f"ALTER TABLE {self._table} DETACH PARTITION {partition.name} {how}"
                )
        finally:
            await self._raw.execute("RESET lock_timeout")
        await self.drop_detached()

    async def drop_detached(self) -> None:
        """Drops what was detached to be dropped."""
        rows = await self._raw.fetch(
            "SELECT c.relname AS name FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace"
            " AND c.relkind = 'r' AND NOT c.relispartition AND starts_with(c.relname, $1)"
            " AND obj_description(c.oid, 'pg_class') = $2",
            f"{self._table}_p",
            EXPIRED,
        )
        for row in rows:
            name = row["name"]
            await self._with_locks(partial(self._raw.execute, f"DROP TABLE {name}"))
            log.info("partition_dropped", table=self._table, partition=name)

    async def cover(self) -> None:
        """Has a first partition for all ids before the second: what is written late has a place."""
        first = (await self.partitions())[0]
        if first.start is not None:
            await self._with_locks(partial(self._add, self._first, None, first.start))

    async def is_empty(self, partition: Partition) -> bool:
        return not await self._raw.fetchval(f"SELECT EXISTS (SELECT FROM {partition.name})")

    async def has_kept_rows(self, partition: Partition) -> bool:
        """Whether rows that must stay keep the partition, or rows of another table that belong to its."""
        if self._rule.kept_by is None:
            return False
        assert partition.end is not None
        query = self._rule.kept_by.format(
            partition=partition.name, end_ms=creation_ms(partition.end)
        )
        return bool(await self._raw.fetchval(f"SELECT EXISTS ({query})"))

    async def _add(self, name: str, start: str | None, end: str | None) -> None:
        await self._raw.execute(f"CREATE TABLE {name} (LIKE {self._table} INCLUDING ALL)")
        await self._attach(name, start, end)

    async def _attach(self, name: str, start: str | None, end: str | None) -> None:
        since = "MINVALUE" if start is None else f"'{start}'"
        until = "MAXVALUE" if end is None else f"'{end}'"
        await self._raw.execute(
            f"ALTER TABLE {self._table} ATTACH PARTITION {name} FOR VALUES FROM ({since}) TO ({until})"
        )

    @property
    def _first(self) -> str:
        return f"{self._table}_p0"

    def _name(self, start: str) -> str:
        day = datetime.fromtimestamp(creation_ms(start) / 1000, UTC)
        return f"{self._table}_p{day:%Y%m%d}"

    async def _with_locks(self, change: Callable[[], Awaitable[object]]) -> None:
        """Makes a change that nobody may wait for long, in a transaction. Raises `LockTimeout` when the table
        was in use each time."""
        attempt = 0
        while True:
            try:
                with named_errors():
                    async with self._raw.transaction():
                        await self._raw.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
                        await change()
                return
            except (LockTimeout, Deadlock):
                attempt += 1
                if attempt == LOCK_ATTEMPTS:
                    raise
            await asyncio.sleep(LOCK_PAUSES_S[min(attempt, len(LOCK_PAUSES_S)) - 1])


@asynccontextmanager
async def partitioned_table(
    db: Database, rule: PartitionRule
) -> AsyncIterator[PartitionedTable | None]:
    """A session that alone changes the partitions of the rule's table; None while another one does."""
    async with db.session() as raw:
        if await raw.fetchval(f"SELECT pg_try_advisory_lock({lock_key(rule.table)})"):
            yield PartitionedTable(raw, rule)
        else:
            yield None


async def read_partitions(tx: Tx) -> dict[str, list[Partition]]:
    """The partitions of each partitioned table, in the order of their ids."""
    tables = await tx.fetch_all(
        "SELECT relname AS name FROM pg_class WHERE relkind = 'p'"
        " AND relnamespace = current_schema()::regnamespace ORDER BY relname"
    )
    found = dict[str, list[Partition]]()
    for table in tables:
        rows = await tx.fetch_all(_PARTITIONS.replace("$1", ":name"), {"name": table["name"]})
        found[table["name"]] = _in_order(rows)
    return found


def lock_key(table: str) -> str:
    """The key, in SQL, of the advisory lock of who changes a table's partitions or its indexes."""
    return f"hashtextextended('msgsvc_partitions.{table}', 0)"


def _in_order(rows: Iterable[Any]) -> list[Partition]:
    return sorted(map(_partition, rows), key=lambda each: each.start or "")


def _partition(row: Any) -> Partition:
    found = _BOUND.search(row["bound"])
    assert found is not None, f"{row['name']} has a bound of another kind: {row['bound']}"
    return Partition(row["name"], found["start"], found["end"], row["is_pending"])
