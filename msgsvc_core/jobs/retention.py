"""Hourly jobs that delete expired rows."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.db.sql import limited_delete
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.jobs.steps import in_parts, in_steps
from msgsvc_core.kernel.clock import Clock

#: Deletes in steps what no `RetentionRule` describes.
Purge = Callable[[JobContext], Awaitable[None]]


class Retention:
    """The job `name` that deletes expired rows. Each owner of tables has one, with the retention rules of
    its tables."""

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        rules: Sequence[RetentionRule],
        purges: Sequence[Purge] = (),
        partitioning: Partitioning | None = None,
    ) -> None:
        self._name = name
        self._clock = clock
        self._rules = rules
        self._purges = purges
        self._partitioning = partitioning

    @property
    def spec(self) -> JobSpec:
        return JobSpec(self._name, self.purge, every_s=3600)

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Deletes each table's expired rows in steps; a failure does not prevent the others."""
        now_ms = self._clock.now_ms()
        removing = [
            partial(self._remove, ctx, each, now_ms - each.retention_ms) for each in self._rules
        ]
        purging = [partial(purge, ctx) for purge in self._purges]
        await in_parts(*removing, *purging)

    async def _remove(self, ctx: JobContext, rule: RetentionRule, before_ms: int) -> None:
        tables: Sequence[str] = [rule.table]
        if rule.partitions is not None and self._partitioning is not None:
            tables = await self._partitioning.maintain(ctx, rule.partitions)
        for table in tables:
            await in_steps(ctx, partial(_remove_some, table, rule.column, before_ms))


async def _remove_some(table: str, column: str, before_ms: int, tx: Tx, limit: int) -> int:
    old = limited_delete(table, f"{column} < :before_ms", tx.dialect)
    params = {"before_ms": before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM {table} WHERE {old}", params)
