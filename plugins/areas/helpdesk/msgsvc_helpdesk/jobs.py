"""Background jobs: timed changes of tickets, and their retention."""

from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.files.service import Files
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob, Stopping, exponential
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock
from msgsvc_helpdesk import removing, store
from msgsvc_helpdesk.agents.notifications import GONE_JOB, AgentNotifications
from msgsvc_helpdesk.inbox_store import WAITING
from msgsvc_helpdesk.models import Status
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.service_levels.settings import REFRESH_JOB
from msgsvc_helpdesk.settings import HelpdeskSettings

LOOK = "helpdesk.look"

log = structlog.get_logger(__name__)

#: Tickets that are looked for at a time.
BATCH = 100

#: Tickets as (project_id, ticket_id), and what is done with one of them.
Found = list[tuple[str, str]]
Find = Callable[[Tx], Awaitable[Found]]
Do = Callable[[Tx, str, str], Awaitable[None]]


class TicketJobs:
    """Timed changes of tickets, and erasure of subscribers from them."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        jobs: JobQueue,
        files: Files,
        tickets: Tickets,
        notifications: AgentNotifications,
        settings: HelpdeskSettings,
    ) -> None:
        self._clock = clock
        self._db = db
        self._jobs = jobs
        self._files = files
        self._tickets = tickets
        self._notifications = notifications
        self._settings = settings

    @property
    def specs(self) -> Sequence[JobSpec]:
        timed = JobSpec(
            LOOK,
            self.run_due,
            every_s=self._settings.look_s,
            backoff=exponential(first_s=1.0, max_s=30.0),
            on_dead=self._reschedule,
        )
        purge = JobSpec("helpdesk.purge", self.purge, every_s=3600)
        return (
            timed,
            purge,
            JobSpec(GONE_JOB, self.unassign_left),
            JobSpec(REFRESH_JOB, self.refresh_targets),
        )

    async def run_due(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Wakes tickets whose snooze is over, and reports customers who wait too long and targets of service
        levels that are missed, or soon will be.

        One transaction per ticket, which reads it again: concurrent runs report it once.
        """
        now_ms = self._clock.now_ms()
        waiting_since_ms = now_ms - self._settings.unanswered_hours * HOUR_MS
        await _each(ctx, lambda tx: store.find_snoozed(tx, now_ms, BATCH), self._tickets.wake)
        await _each(
            ctx,
            lambda tx: store.find_waiting(tx, waiting_since_ms, BATCH),
            self._tickets.notify_waiting,
        )
        await _each(
            ctx,
            lambda tx: self._tickets.sla.find_due(tx, now_ms, BATCH),
            self._tickets.check_targets,
        )

    async def _reschedule(self, tx: Tx, _job: Job, _error: str) -> None:
        """Several processes died while they looked. It is a dead letter, and the looks go on."""
        run_at_ms = self._clock.now_ms() + round(self._settings.look_s * 1000)
        await self._jobs.enqueue(
            tx, NewJob(LOOK, key="recurring", run_at_ms=run_at_ms, traced=False)
        )

    async def refresh_targets(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Has the tickets of projects follow changed settings, each in a transaction."""
        for project_id in dict.fromkeys(job.payload["project_id"] for job in jobs):
            for status in WAITING:
                await self._refresh_targets(ctx, project_id, status)

    async def _refresh_targets(self, ctx: JobContext, project_id: str, status: Status) -> None:
        after = ""
        while True:
            async with ctx.reading() as tx:
                found = await store.list_unfinished(tx, project_id, status, after, BATCH)
            if not found:
                return
            for ticket_id in found:
                if ctx.stopping:
                    raise Stopping
                async with ctx.transaction() as tx:
                    await self._tickets.refresh_targets(tx, project_id, ticket_id)
            after = found[-1]

    async def unassign_left(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Takes their tickets from members who answer no customers any more, each in a transaction, so
        that the others are offered them."""
        for job in jobs:
            await self._unassign_left(ctx, job.payload["project_id"], job.payload["member_id"])

    async def _unassign_left(self, ctx: JobContext, project_id: str, member_id: str) -> None:
        async def find(tx: Tx) -> Found:
            left = await self._notifications.left_by(tx, project_id, member_id, BATCH)
            return [(project_id, ticket_id) for ticket_id in left]

        async def take(tx: Tx, project_id: str, ticket_id: str) -> None:
            await self._tickets.unassign(tx, project_id, ticket_id, member_id)

        if failed := await _each(ctx, find, take):
            raise RuntimeError(f"{len(failed)} tickets are still those of {member_id}")

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Removes tickets that were closed longer ago than they are kept."""
        until_ms = self._clock.now_ms() - self._settings.closed_ticket_days * DAY_MS

        async def forget(tx: Tx, project_id: str, ticket_id: str) -> None:
            await removing.remove_merged(self._files, tx, project_id, ticket_id, until_ms)

        await _each(ctx, lambda tx: store.find_closed(tx, until_ms, BATCH), forget)

    async def erase(self, project_id: str, subscriber_id: str) -> None:
        """Erases a person from their tickets, a few at a time; idempotent."""
        while True:
            async with self._db.transaction() as tx:
                due = await store.find_of_subscriber(tx, project_id, subscriber_id, BATCH)
                await removing.empty(self._files, tx, project_id, due, self._clock.now_ms())
            if not due:
                return


async def _each(ctx: JobContext, find: Find, do: Do) -> Collection[tuple[str, str]]:
    """Does something with every ticket that is found, until there is none; returns those that failed.

    These keep no other project's tickets waiting.
    """
    failed = set[tuple[str, str]]()
    while True:
        async with ctx.reading() as tx:
            due = [ticket for ticket in await find(tx) if ticket not in failed]
        if not due:
            return failed
        for project_id, ticket_id in due:
            if ctx.stopping:
                raise Stopping
            try:
                async with ctx.transaction() as tx:
                    await do(tx, project_id, ticket_id)
            except DatabaseUnavailable:
                raise
            except Exception:
                log.exception("ticket_look_failed", project_id=project_id, ticket_id=ticket_id)
                failed.add((project_id, ticket_id))
