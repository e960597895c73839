"""Background work: what is due, and the hourly purge."""

from collections.abc import Sequence

import structlog

from msgsvc_core.jobs import Job, JobContext, JobSpec, exponential, in_steps
from msgsvc_scheduling import store
from msgsvc_scheduling.models import Due
from msgsvc_scheduling.running import PASSING, Running
from msgsvc_scheduling.settings import SchedulingSettings

DAY_MS = 24 * 3600 * 1000

log = structlog.get_logger(__name__)


async def run_due(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Does all that is due, in transactions that a kill leaves undone as a whole.

    A mailing for which the database takes too long is left for the next run, and the others go on
    without it: it would be the first again each time, and hold up those of all projects. What kept it
    from being started is raised at the end.
    """
    service = ctx.service
    running, most = service.get(Running), service.section(SchedulingSettings).batch
    left: list[Due] = []
    failure: Exception | None = None
    is_more = True
    while is_more and not ctx.stopping:
        # After a failure too: if there is no database at all this raises, and nothing else is tried.
        async with service.db.read() as tx:
            found = await store.list_due(tx, service.clock.now_ms(), most + len(left))
        is_more = len(found) == most + len(left)
        due = [one for one in found if one not in left]
        await running.run(*(one for one in due if one.subscriber_id is not None))
        for mailing in (one for one in due if one.subscriber_id is None):
            if ctx.stopping:
                return
            try:
                await running.run(mailing)
            except PASSING as error:
                log.warning("scheduled_mailing_put_off", id=mailing.record_id, error=str(error))
                left.append(mailing)
                failure, is_more = failure or error, True
                break
    if failure is not None:
        raise failure


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
