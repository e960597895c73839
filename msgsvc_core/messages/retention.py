"""Retention of messages: those whose delivery ended are deleted after `limits.message_days`."""

from functools import partial

from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import JobContext
from msgsvc_core.jobs.steps import in_steps
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.messages import store


class MessagePurge:
    """Deletes old messages, project by project: the time in their ids is found by the primary key, so that
    no index by age is written on every send."""

    def __init__(self, *, clock: Clock, message_days: int) -> None:
        self._clock = clock
        self._message_days = message_days

    async def purge(self, ctx: JobContext) -> None:
        """Deletes in steps, unless `message_days` is 0. Raises `Stopping` when the runner shuts down."""
        if not self._message_days:
            return
        before = earliest_id("msg", self._clock.now_ms() - self._message_days * DAY_MS)
        project_id: str | None = ""
        while project_id is not None:
            async with ctx.reading() as tx:
                project_id = await store.next_project(tx, project_id)
            if project_id is not None:
                await in_steps(ctx, partial(_purge_some, project_id=project_id, before=before))


async def _purge_some(tx: Tx, limit: int, *, project_id: str, before: str) -> int:
    return await store.delete_ended(tx, project_id, before, limit)
