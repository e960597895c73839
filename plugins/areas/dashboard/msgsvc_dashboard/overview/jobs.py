"""The hourly job of the counts."""

from collections.abc import Sequence

from msgsvc_core.db import Database
from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.overview.counting import Counts


class FoldJob:
    """The job that merges and deletes old counts, and records how many subscribers there are."""

    def __init__(self, *, db: Database, counts: Counts, subscribers: Subscribers) -> None:
        self._db = db
        self._counts = counts
        self._subscribers = subscribers

    @property
    def spec(self) -> JobSpec:
        return JobSpec("dashboard.fold", self.fold, every_s=3600)

    async def fold(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """See `Counts.fold` and `Counts.record_active`."""
        # Counted outside the transaction that writes, in which SQLite lets nobody else write.
        async with self._db.read() as tx:
            active = await self._subscribers.active_by_project(tx)
        async with ctx.completing(*jobs) as tx:
            await self._counts.fold(tx)
            if active:
                await self._counts.record_active(tx, active)
