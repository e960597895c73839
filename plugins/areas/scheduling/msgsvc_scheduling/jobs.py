"""Background work: what is due, and the hourly purge."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass

import structlog

from msgsvc_core.jobs import Job, JobContext, JobSpec, exponential, in_steps
from msgsvc_scheduling import store
from msgsvc_scheduling.models import Due
from msgsvc_scheduling.running import PASSING, Running
from msgsvc_scheduling.settings import SchedulingSettings

DAY_MS = 24 * 3600 * 1000

#: Projects whose mailings are started at once: each has a connection meanwhile, of PostgreSQL's pool.
AT_ONCE = 4

log = structlog.get_logger(__name__)


async def run_due(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Does all that is due, in transactions that a kill leaves undone as a whole.

    Messages to one each are done beside the mailings, and those of a project beside those of others. What the
    database took too long for is left for the next run, and the others go on without it: it would be
    the first again each time. What kept it from being done is raised at the end.
    """
    service = ctx.service
    running, most = service.get(Running), service.section(SchedulingSettings).batch
    left: list[Due] = []
    before: list[Due] = []
    failure: Exception | None = None
    is_more = True
    while is_more and not ctx.stopping:
        # After a failure too: if there is no database at all this raises, and nothing else is tried.
        async with service.db.read() as tx:
            found = await store.list_due(tx, service.clock.now_ms(), most + len(left))
        # What somebody else is about to change stays, and comes with the next run.
        is_more = len(found) == most + len(left) and found != before
        before = found
        due = [one for one in found if one not in left]
        # All are awaited even if one fails: its mailings must not go on beside those of the next run.
        ends = await asyncio.gather(*_side_by_side(ctx, running, due), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end
            if end is not None:
                left += end.left
                failure, is_more = failure or end.error, True
    if failure is not None:
        raise failure


@dataclass(frozen=True, slots=True)
class PutOff:
    """What is left for the next run, and why."""

    left: Sequence[Due]
    error: Exception


def _side_by_side(
    ctx: JobContext, running: Running, due: Sequence[Due]
) -> Iterator[Awaitable[PutOff | None]]:
    """What is due, in parts of which none waits for another."""
    to_one = [one for one in due if one.subscriber_id is not None]
    if to_one:
        yield _run_messages(running, to_one)
    of_projects: dict[str, list[Due]] = defaultdict(list)
    for one in due:
        if one.subscriber_id is None:
            of_projects[one.project_id].append(one)
    at_once = asyncio.Semaphore(AT_ONCE)
    for mailings in of_projects.values():
        yield _run_mailings(ctx, running, mailings, at_once)


async def _run_messages(running: Running, due: Sequence[Due]) -> PutOff | None:
    try:
        await running.run(*due)
    except PASSING as error:
        log.warning("scheduled_messages_put_off", count=len(due), error=str(error))
        return PutOff(due, error)
    return None


async def _run_mailings(
    ctx: JobContext, running: Running, due: Sequence[Due], at_once: asyncio.Semaphore
) -> PutOff | None:
    """Up to the first that can't be started now; those after it come with the next look."""
    for mailing in due:
        async with at_once:
            if ctx.stopping:
                return None
            try:
                await running.run(mailing)
            except PASSING as error:
                log.warning("scheduled_mailing_put_off", id=mailing.record_id, error=str(error))
                return PutOff([mailing], error)
    return None


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
