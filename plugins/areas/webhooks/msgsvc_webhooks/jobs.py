"""Background jobs: delivery attempts, replays, and the hourly purge."""

from collections.abc import Sequence
from functools import partial

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_parts, in_steps
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_webhooks import journal, retention, store
from msgsvc_webhooks.delivering import Deliveries
from msgsvc_webhooks.replays import Replays
from msgsvc_webhooks.service import DELIVER, Webhooks

#: Faults of our own (the database, a lost key) that a delivery survives; what receivers do is
#: not counted here, but in the retry plan.
FAULTS_ALLOWED = 20


class WebhookJobs:
    """The kinds of jobs, and the handling of dead letters."""

    def __init__(
        self,
        *,
        clock: Clock,
        webhooks: Webhooks,
        deliveries: Deliveries,
        replays: Replays,
        partitioning: Partitioning,
    ) -> None:
        self._clock = clock
        self._webhooks = webhooks
        self._deliveries = deliveries
        self._replays = replays
        self._partitioning = partitioning

    def specs(self) -> list[JobSpec]:
        deliver = JobSpec(
            DELIVER,
            self._deliveries.deliver,
            max_attempts=FAULTS_ALLOWED,
            on_dead=self.finish_dead,
            on_retry=self.restart,
            inline=True,
            sends="events to webhooks; receivers know repeats by their delivery id",
        )
        return [deliver, self._replays.spec, JobSpec("webhooks.purge", self.purge, every_s=3600)]

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Forgets old deliveries, and secrets that have ended."""
        now_ms = self._clock.now_ms()
        before_ms = now_ms - self._webhooks.settings.journal_days * DAY_MS
        await in_parts(
            partial(_purge_secrets, ctx, now_ms),
            partial(self._purge_deliveries, ctx, before_ms),
            # Last: attempts stay as long as their delivery.
            partial(self._purge_attempts, ctx, before_ms),
        )

    async def _purge_deliveries(self, ctx: JobContext, before_ms: int) -> None:
        rule = retention.of_deliveries(self._webhooks.settings.journal_days)
        for table in await self._partitioning.maintain(ctx, rule):
            await in_steps(ctx, partial(_purge_some, table, before_ms))

    async def _purge_attempts(self, ctx: JobContext, before_ms: int) -> None:
        rule = retention.of_attempts(self._webhooks.settings.journal_days)
        for table in await self._partitioning.maintain(ctx, rule):
            await in_steps(ctx, partial(_purge_some_attempts, table, before_ms))

    async def finish_dead(self, tx: Tx, job: Job, _error: str) -> None:
        """Ends a delivery whose job failed for good by a fault of ours; its event is in the feed."""
        delivery = await journal.find(tx, job.project_id or "", job.payload["delivery_id"])
        if delivery is not None and delivery.status == "pending":
            await journal.finish(tx, [delivery], "failed", self._clock.now_ms())

    async def restart(self, tx: Tx, job: Job) -> None:
        """Has the delivery of a dead job wait for it again; refuses where nothing would be sent."""
        await self._webhooks.restart(tx, job)


async def _purge_some(table: str, before_ms: int, tx: Tx, limit: int) -> int:
    return await journal.purge(tx, before_ms, limit, table=table)


async def _purge_some_attempts(table: str, before_ms: int, tx: Tx, limit: int) -> int:
    return await journal.purge_attempts(tx, before_ms, limit, table=table)


async def _purge_secrets(ctx: JobContext, now_ms: int) -> None:
    async with ctx.transaction() as tx:
        await store.purge_secrets(tx, now_ms)
