"""Retention of messages: those whose delivery ended are deleted after `limits.message_days`."""

from functools import partial
from typing import Protocol

from msgsvc_core.db import Tx
from msgsvc_core.db.retention import PartitionRule
from msgsvc_core.jobs.contract import JobContext
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.jobs.steps import in_steps
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.messages import route_store, store


class MessagePurge:
    """Deletes old messages, project by project: the time in their ids is found by the primary key, so that
    no index by age is written on every send."""

    def __init__(self, *, clock: Clock, message_days: int, partitioning: Partitioning) -> None:
        self._clock = clock
        self._message_days = message_days
        self._partitioning = partitioning

    async def purge(self, ctx: JobContext) -> None:
        """Deletes in steps, unless `message_days` is 0. Raises `Stopping` when the runner shuts down."""
        tables = await self._partitioning.maintain(ctx, partition_rule(self._message_days))
        if not self._message_days:
            return
        before = earliest_id("msg", self._clock.now_ms() - self._message_days * DAY_MS)
        for table in tables:
            await _purge_table(ctx, table, before, store.delete_ended)
        await _purge_table(ctx, "core_message_copies", before, route_store.delete_before)


class _Delete(Protocol):
    async def __call__(
        self, tx: Tx, project_id: str, before: str, limit: int, *, table: str
    ) -> int: ...


async def _purge_table(ctx: JobContext, table: str, before: str, delete: _Delete) -> None:
    project_id: str | None = ""
    while project_id is not None:
        async with ctx.reading() as tx:
            project_id = await store.next_project(tx, project_id, table=table)
        if project_id is not None:
            step = partial(
                _purge_some, delete=delete, table=table, project_id=project_id, before=before
            )
            await in_steps(ctx, step)


async def _purge_some(
    tx: Tx, limit: int, *, delete: _Delete, table: str, project_id: str, before: str
) -> int:
    return await delete(tx, project_id, before, limit, table=table)


def partition_rule(message_days: int) -> PartitionRule:
    """Partitions of messages; one with a message that is yet to be delivered stays."""
    return PartitionRule(
        "core_messages",
        "message_id",
        "msg",
        message_days,
        kept_by="SELECT FROM {partition} WHERE status IN ('queued', 'sending')",
    )
