"""Background work: steps that are due are looked for all the time; deleted chains are removed."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping, exponential
from msgsvc_drip.service import REMOVE, Drips
from msgsvc_drip.settings import DripSettings
from msgsvc_drip.taking import StepTaker

NAME = "drip.take"

#: People of a deleted chain who are removed in one transaction: some 10 ms.
REMOVED_AT_ONCE = 2000


async def take(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Takes all steps that are due, a batch a transaction. Two who do it at once take each one once."""
    taker = ctx.service.get(StepTaker)
    while await taker.take_some():
        if ctx.stopping:
            raise Stopping


async def remove(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Removes who was in chains that were deleted, and then what is left of these."""
    drips = ctx.service.get(Drips)
    for job in jobs:
        chain = job.payload["project_id"], job.payload["drip_id"]
        is_done = False
        while not is_done:
            if ctx.stopping:
                raise Stopping
            async with ctx.holding(job) as tx:
                is_done = await drips.remove_deleted(tx, *chain, REMOVED_AT_ONCE)


REMOVE_JOB = JobSpec(REMOVE, remove)


def take_job(settings: DripSettings) -> JobSpec:
    """The job that looks for due steps, as often as the settings say."""
    return JobSpec(
        NAME,
        take,
        every_s=settings.look_s,
        backoff=exponential(first_s=1.0, most_s=30.0),
    )
