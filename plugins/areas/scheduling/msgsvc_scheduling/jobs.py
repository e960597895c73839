"""Background work: what is due, and the hourly purge."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_scheduling import store
from msgsvc_scheduling.running import Running
from msgsvc_scheduling.settings import SchedulingSettings

#: Records that are looked up at once.
STEP = 200

DAY_MS = 24 * 3600 * 1000


async def run_due(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Does all that is due, each in a transaction of its own, so that a kill leaves none half done."""
    service = ctx.service
    running = service.get(Running)
    while not ctx.stopping:
        async with service.db.read() as tx:
            found = await store.list_due(tx, service.clock.now_ms(), STEP)
        for due in found:
            if ctx.stopping:
                return
            await running.run(due)
        if len(found) < STEP:
            return


async def purge(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Deletes what has been over for longer than the setting `kept_days`."""
    service = ctx.service
    kept_ms = service.section(SchedulingSettings).kept_days * DAY_MS
    async with ctx.completing(*jobs) as tx:
        await store.purge(tx, service.clock.now_ms() - kept_ms)


RUN_JOB = JobSpec("scheduling.run", run_due, every_s=1)
PURGE_JOB = JobSpec("scheduling.purge", purge, every_s=3600)
