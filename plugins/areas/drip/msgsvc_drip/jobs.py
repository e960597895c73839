"""Background jobs: polling for due steps, and deleting campaigns."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping, exponential
from msgsvc_drip.service import REMOVE, Drips
from msgsvc_drip.step_runner import StepRunner

NAME = "drip.take"

#: Enrollments of a deleted campaign that are deleted per transaction: some 10 ms.
REMOVED_AT_ONCE = 2000


class DripJobs:
    """The job that runs due steps, at the interval of the settings, and the one that deletes campaigns."""

    def __init__(self, *, drips: Drips, runner: StepRunner, look_s: float) -> None:
        self._drips = drips
        self._runner = runner
        self._look_s = look_s

    @property
    def specs(self) -> list[JobSpec]:
        backoff = exponential(first_s=1.0, max_s=30.0)
        return [
            JobSpec(NAME, self.run_due, every_s=self._look_s, backoff=backoff),
            JobSpec(REMOVE, self.remove),
        ]

    async def run_due(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Sends all due steps, one transaction per batch. Safe to run concurrently: each is sent once."""
        while await self._runner.run_batch():
            if ctx.stopping:
                raise Stopping

    async def remove(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Deletes the enrollments of deleted campaigns, and then the campaigns."""
        for job in jobs:
            chain = job.payload["project_id"], job.payload["drip_id"]
            is_done = False
            while not is_done:
                if ctx.stopping:
                    raise Stopping
                async with ctx.holding(job) as tx:
                    is_done = await self._drips.remove_deleted(tx, *chain, REMOVED_AT_ONCE)
