"""Background work: what is due, and the hourly purge."""

from collections.abc import Sequence

from msgsvc_core.jobs import Job, JobContext, JobSpec, exponential, in_steps
from msgsvc_scheduling import store
from msgsvc_scheduling.running import Running
from msgsvc_scheduling.settings import SchedulingSettings

DAY_MS = 24 * 3600 * 1000


async def run_due(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Does all that is due, in transactions that a kill leaves undone as a whole."""
    service = ctx.service
    running, most = service.get(Running), service.section(SchedulingSettings).batch
    while not ctx.stopping:
        async with service.db.read() as tx:
            found = await store.list_due(tx, service.clock.now_ms(), most)
        await running.run(*(one for one in found if one.subscriber_id is not None))
        for mailing in (one for one in found if one.subscriber_id is None):
            if ctx.stopping:
                return
            await running.run(mailing)
        if len(found) < most:
            return


async def purge(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Deletes what has been over for longer than the setting `kept_days`."""
    kept_ms = ctx.service.section(SchedulingSettings).kept_days * DAY_MS
    before_ms = ctx.service.clock.now_ms() - kept_ms
    await in_steps(ctx, lambda tx, most: store.purge(tx, before_ms, most))


#: After a failure it looks again soon: others wait for their time.
RUN_JOB = JobSpec(
    "scheduling.run", run_due, every_s=1, backoff=exponential(first_s=1.0, most_s=30.0)
)
PURGE_JOB = JobSpec("scheduling.purge", purge, every_s=3600)
