"""Background work: steps that are due are looked for all the time."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping, exponential
from msgsvc_drip.settings import DripSettings
from msgsvc_drip.taking import StepTaker

NAME = "drip.take"


async def take(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Takes all steps that are due, a batch a transaction. Two who do it at once take each one once."""
    taker = ctx.service.get(StepTaker)
    while await taker.take_some():
        if ctx.stopping:
            raise Stopping


def take_job(settings: DripSettings) -> JobSpec:
    """The job that looks for due steps, as often as the settings say."""
    return JobSpec(
        NAME,
        take,
        every_s=settings.look_s,
        backoff=exponential(first_s=1.0, most_s=30.0),
    )
