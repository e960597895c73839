"""Partitions of large tables on PostgreSQL: made and dropped by the hourly purges."""

from collections.abc import Sequence

import structlog

from msgsvc_core.db import Database
from msgsvc_core.db.partitions import PartitionedTable, partitioned_table
from msgsvc_core.db.retention import PartitionRule
from msgsvc_core.jobs.contract import JobContext, Stopping
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.telemetry.partition_metrics import PartitionMetrics

log = structlog.get_logger(__name__)


class Partitioning:
    """Partitions tables that have grown beyond `min_mib` MiB, of which something is to be deleted; 0 leaves
    all as they are. A table that has partitions keeps them."""

    def __init__(
        self, *, clock: Clock, db: Database, min_mib: int, metrics: PartitionMetrics
    ) -> None:
        self._clock = clock
        self._db = db
        self._min_mib = min_mib
        self._metrics = metrics

    async def maintain(self, ctx: JobContext, rule: PartitionRule) -> Sequence[str]:
        """Adds and drops partitions; returns the tables whose old rows are to be deleted one by one: the
        table itself while it has no partitions, then the first of them, and others that must stay.

        Each step is short, and is finished by the next run if this one is ended in between. Raises `Stopping`
        when the runner shuts down, `LockTimeout` when the table was in use for too long.
        """
        if self._db.dialect != "postgresql" or not await self._is_concerned(rule):
            return [rule.table]
        async with partitioned_table(self._db, rule) as table:
            if table is None:
                # Another purge is about it.
                return []
            if not await table.is_partitioned() and not await self._convert(table, rule):
                return [rule.table]
            before = earliest_id(rule.prefix, self._clock.now_ms() - rule.days * DAY_MS)
            await self._finish(table)
            _check(ctx)
            await table.split(self._clock.now_ms())
            _check(ctx)
            await self._drop_past(ctx, table, rule, before)
            await table.cover()
            partitions = await table.partitions()
        self._metrics.set_count(rule.table, len(partitions))
        if not rule.days:
            return []
        first, *others = partitions
        return [first.name, *(each.name for each in others if each.is_past(before))]

    async def _is_concerned(self, rule: PartitionRule) -> bool:
        """Without a session of its own, as most databases are small."""
        async with self._db.read() as tx:
            row = await tx.fetch_one(
                "SELECT relkind::text AS kind, pg_total_relation_size(oid) >> 20 AS mib FROM pg_class"
                " WHERE oid = to_regclass(:name)",
                {"name": rule.table},
            )
        assert row is not None
        is_large = bool(self._min_mib and rule.days and row["mib"] >= self._min_mib)
        return is_large or bool(row["kind"] == "p")

    async def _convert(self, table: PartitionedTable, rule: PartitionRule) -> bool:
        if reason := await table.obstacle(self._db.session_name):
            log.warning("table_not_partitioned", table=rule.table, reason=reason)
            return False
        await table.convert()
        return True

    async def _finish(self, table: PartitionedTable) -> None:
        """What a run did not come to that was ended."""
        for partition in await table.partitions():
            if partition.is_pending:
                await table.drop(partition)
        await table.drop_detached()
        await table.cover()

    async def _drop_past(
        self, ctx: JobContext, table: PartitionedTable, rule: PartitionRule, before: str
    ) -> None:
        """Oldest first, up to one that must stay: ranges have no gap."""
        past = [each for each in await table.partitions() if each.is_past(before)]
        for partition in past if rule.days else ():
            # The first one is there for what comes late, which is rarely anything.
            is_idle = len(past) == 1 and await table.is_empty(partition)
            if is_idle or await table.has_kept_rows(partition):
                return
            _check(ctx)
            await table.drop(partition)
            self._metrics.count_dropped(rule.table)


def _check(ctx: JobContext) -> None:
    if ctx.stopping:
        raise Stopping
