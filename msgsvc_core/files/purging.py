"""Removes files that nobody keeps, and those of people who are erased, a few in a transaction.

They have up to 200 chunks each, and nobody's request waits for that many.
"""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.files import store
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.jobs.steps import in_steps

#: Files whose content is removed in one transaction.
AT_ONCE = 5


async def remove(tx: Tx, project_id: str, file_ids: Sequence[str]) -> bool:
    """Removes files. False if they are too many for one transaction: they are found no more then, and
    their content is left for `purge`."""
    if len(file_ids) <= AT_ONCE:
        if file_ids:
            await store.delete(tx, project_id, file_ids)
        return True
    await store.mark_removed(tx, project_id, file_ids)
    return False


async def purge(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Removes the content of files that were too many at once, and what was uploaded or sent longer than
    `media.loose_hours` ago and nobody refers to."""
    await in_steps(ctx, store.delete_removed, AT_ONCE)
    hours = ctx.service.settings.media.loose_hours
    before_ms = ctx.service.clock.now_ms() - hours * 3600 * 1000
    await in_steps(ctx, lambda tx, most: store.delete_loose(tx, before_ms, most), AT_ONCE)


async def forget_files(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
    """Removes all files of a person, kept or not. Raises `Stopping` when it should."""

    async def some(tx: Tx, most: int) -> int:
        return await store.delete_of_subscriber(tx, project_id, subscriber_id, most)

    await in_steps(ctx, some, AT_ONCE)


SPEC = JobSpec("core.purge_files", purge, every_s=3600)
