"""Merges and deletes old counts."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_dashboard.overview.counting import Counts


class FoldJob:
    """The job that merges and deletes old counts."""

    def __init__(self, *, counts: Counts) -> None:
        self._counts = counts

    @property
    def spec(self) -> JobSpec:
        return JobSpec("dashboard.fold", self.fold, every_s=6 * 3600)

    async def fold(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """See `Counts.fold`."""
        async with ctx.completing(*jobs) as tx:
            await self._counts.fold(tx)
