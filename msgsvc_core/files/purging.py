"""Removes files that nobody keeps, and those of people who are erased, a few in a transaction."""

from collections.abc import Sequence

from msgsvc_core.files import store
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Stopping

#: Files that are removed in one transaction, with up to 200 chunks each.
AT_ONCE = 5


async def purge(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Removes what was uploaded or sent longer than `media.loose_hours` ago, and nobody refers to."""
    hours = ctx.service.settings.media.loose_hours
    before_ms = ctx.service.clock.now_ms() - hours * 3600 * 1000
    removed = AT_ONCE
    while removed == AT_ONCE:
        if ctx.stopping:
            raise Stopping
        async with ctx.service.db.transaction() as tx:
            removed = await store.delete_loose(tx, before_ms, AT_ONCE)


async def forget_files(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
    """Removes all files of a person, kept or not. Raises `Stopping` when it should."""
    removed = AT_ONCE
    while removed == AT_ONCE:
        if ctx.stopping:
            raise Stopping
        async with ctx.service.db.transaction() as tx:
            removed = await store.delete_of_subscriber(tx, project_id, subscriber_id, AT_ONCE)


SPEC = JobSpec("core.purge_files", purge, every_s=3600)
