"""Removes files that nobody keeps, and those of people who are erased, a few in a transaction.

They have up to 200 chunks each, and nobody's request waits for that many.
"""

from collections.abc import Awaitable, Callable, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.files import store
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Stopping

#: Files whose content is removed in one transaction.
AT_ONCE = 5

#: Removes some in a transaction; returns how many.
RemoveSome = Callable[[Tx], Awaitable[int]]


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
    await _all(ctx, lambda tx: store.delete_removed(tx, AT_ONCE))
    hours = ctx.service.settings.media.loose_hours
    before_ms = ctx.service.clock.now_ms() - hours * 3600 * 1000
    await _all(ctx, lambda tx: store.delete_loose(tx, before_ms, AT_ONCE))


async def forget_files(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
    """Removes all files of a person, kept or not. Raises `Stopping` when it should."""
    await _all(ctx, lambda tx: store.delete_of_subscriber(tx, project_id, subscriber_id, AT_ONCE))


async def _all(ctx: JobContext, remove_some: RemoveSome) -> None:
    """Raises `Stopping` when it should."""
    removed = AT_ONCE
    while removed == AT_ONCE:
        if ctx.stopping:
            raise Stopping
        async with ctx.service.db.transaction() as tx:
            removed = await remove_some(tx)


SPEC = JobSpec("core.purge_files", purge, every_s=3600)
