"""Deletes unreferenced files, and those of erased subscribers, a few per transaction.

A file has up to 200 chunks, too many to delete within a request.
"""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.files import store
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.jobs.steps import in_steps
from msgsvc_core.kernel.clock import HOUR_MS, Clock

JOB = "core.purge_files"

#: Files whose content is deleted in one transaction.
AT_ONCE = 5


async def remove(tx: Tx, project_id: str, file_ids: Sequence[str]) -> bool:
    """Deletes files. If they are too many for one transaction, it returns False: they are marked as
    removed, and `purge` deletes their content."""
    if len(file_ids) <= AT_ONCE:
        if file_ids:
            await store.delete(tx, project_id, file_ids)
        return True
    await store.mark_removed(tx, project_id, file_ids)
    return False


class FilePurge:
    """The job that deletes unreferenced files, `loose_hours` after they were uploaded or received."""

    def __init__(self, *, clock: Clock, loose_hours: int) -> None:
        self._clock = clock
        self._loose_ms = loose_hours * HOUR_MS

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.purge, every_s=3600)

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Also deletes the content of files that a request only marked as removed."""
        await in_steps(ctx, store.delete_removed, AT_ONCE)
        before_ms = self._clock.now_ms() - self._loose_ms
        await in_steps(
            ctx, lambda tx, most: store.delete_unreferenced(tx, before_ms, most), AT_ONCE
        )


async def erase_files(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
    """Deletes all files of a subscriber, also retained ones. Raises `Stopping` when the runner is shutting
    down."""

    async def some(tx: Tx, most: int) -> int:
        return await store.delete_of_subscriber(tx, project_id, subscriber_id, most)

    await in_steps(ctx, some, AT_ONCE)
