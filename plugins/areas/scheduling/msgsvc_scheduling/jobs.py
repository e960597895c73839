"""Background jobs: sending due messages, and the hourly purge."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass

import structlog

from msgsvc_core.jobs import Job, JobContext, JobSpec, exponential, in_steps
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_scheduling import store
from msgsvc_scheduling.models import Due
from msgsvc_scheduling.running import PASSING, Running
from msgsvc_scheduling.settings import SchedulingSettings

#: Projects whose mailings are started concurrently: each takes a connection of PostgreSQL's pool.
AT_ONCE = 4

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Postponed:
    """What the next run continues with, and why."""

    left: Sequence[Due]
    error: Exception


class ScheduleJobs:
    """The jobs that send due messages, and delete finished ones."""

    def __init__(self, *, clock: Clock, running: Running, settings: SchedulingSettings) -> None:
        self._clock = clock
        self._running = running
        self._settings = settings

    @property
    def specs(self) -> list[JobSpec]:
        # After a failure it looks again soon: others wait for their time.
        backoff = exponential(first_s=1.0, max_s=30.0)
        return [
            JobSpec("scheduling.run", self.run_due, every_s=1, backoff=backoff),
            JobSpec("scheduling.purge", self.purge, every_s=3600),
        ]

    async def run_due(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Runs everything that is due, in atomic transactions.

        Messages to single subscribers run beside mailings, and a project's mailings beside those of others.
        What the database took too long for is left for the next run, so that it does not block the others;
        its error is raised at the end.
        """
        limit = self._settings.batch
        left: list[Due] = []
        before: list[Due] = []
        failure: Exception | None = None
        is_more = True
        while is_more and not ctx.stopping:
            # After a failure too: if there is no database at all this raises, and nothing else is tried.
            async with ctx.reading() as tx:
                found = await store.list_due(tx, self._clock.now_ms(), limit + len(left))
            # Rows locked by another transaction are left for the next run.
            is_more = len(found) == limit + len(left) and found != before
            before = found
            due = [one for one in found if one not in left]
            # All are awaited even if one fails: its mailings must not go on beside those of the next run.
            ends = await asyncio.gather(
                *_side_by_side(ctx, self._running, due), return_exceptions=True
            )
            for end in ends:
                if isinstance(end, BaseException):
                    raise end
                if end is not None:
                    left += end.left
                    failure, is_more = failure or end.error, True
        if failure is not None:
            raise failure

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Deletes what has been over for longer than the setting `kept_days`."""
        kept_ms = self._settings.kept_days * DAY_MS
        before_ms = self._clock.now_ms() - kept_ms
        await in_steps(ctx, lambda tx, most: store.purge(tx, before_ms, most))


def _side_by_side(
    ctx: JobContext, running: Running, due: Sequence[Due]
) -> Iterator[Awaitable[Postponed | None]]:
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


async def _run_messages(running: Running, due: Sequence[Due]) -> Postponed | None:
    try:
        await running.run(*due)
    except PASSING as error:
        log.warning("scheduled_messages_put_off", count=len(due), error=str(error))
        return Postponed(due, error)
    return None


async def _run_mailings(
    ctx: JobContext, running: Running, due: Sequence[Due], at_once: asyncio.Semaphore
) -> Postponed | None:
    """Up to the first that can't be started now; those after it come with the next look."""
    for mailing in due:
        async with at_once:
            if ctx.stopping:
                return None
            try:
                await running.run(mailing)
            except PASSING as error:
                log.warning("scheduled_mailing_put_off", id=mailing.record_id, error=str(error))
                return Postponed([mailing], error)
    return None
