"""Deletes ledgers of mailings that ended long ago, hourly and in small steps.

The mailing with its counts, and the messages, are kept.
"""

from collections.abc import Sequence

from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Stopping
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.mailings import ledger, store

#: Recipients deleted per transaction: some 10 ms, for which SQLite's other writers wait.
STEP = 5000


class LedgerPurge:
    """The job that deletes ledgers after `recipient_days`."""

    def __init__(self, *, clock: Clock, recipient_days: int) -> None:
        self._clock = clock
        self._recipient_days = recipient_days

    @property
    def spec(self) -> JobSpec:
        return JobSpec("mailing.purge", self.purge, every_s=3600)

    async def purge(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """If the service stops, the next run continues."""
        before_ms = self._clock.now_ms() - self._recipient_days * DAY_MS
        for job in jobs:
            while True:
                async with ctx.reading() as tx:
                    key = await store.find_to_purge(tx, before_ms)
                if key is None:
                    break
                await self._purge(ctx, job, *key)

    async def _purge(self, ctx: JobContext, job: Job, project_id: str, job_id: str) -> None:
        after: str | None = ""
        while after is not None:
            if ctx.stopping:
                raise Stopping
            async with ctx.holding(job) as tx:
                after = await ledger.remove(tx, project_id, job_id, after, STEP)
                if after is None:
                    await store.purged(tx, project_id, job_id, self._clock.now_ms())
