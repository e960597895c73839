"""Keeps the counts few."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_dashboard.overview.counting import Counts


async def fold(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """See `Counts.fold`."""
    async with ctx.completing(*jobs) as tx:
        await ctx.service.get(Counts).fold(tx)


FOLD_JOB = JobSpec("dashboard.fold", fold, every_s=6 * 3600)
