"""Copies of answers in messages, mailings and tickets, and their deletion with the submission.

A submission that is deleted, alone or with its form, by age or with its subscriber, leaves no stored copies.
Messages in recipients' chats remain there.
"""

from collections.abc import Sequence

from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob, Stopping
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.service import Messages
from msgsvc_core.plugins.tickets import TicketDesk
from msgsvc_forms import copy_store
from msgsvc_forms.copy_store import Copy

#: The job that blanks copies.
FORGET = "forms.forget_copies"

#: Messages that are blanked in one transaction.
CHUNK = 500

#: Seconds after which it looks again: what was being sent when it ran is written down by then.
AGAIN_AFTER_S = 600


class Copies:
    """Deletes the content of copies of answers, by a job."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        jobs: JobQueue,
        messages: Messages,
        mailings: Mailings,
        tickets: TicketDesk,
    ) -> None:
        self._clock = clock
        self._db = db
        self._jobs = jobs
        self._messages = messages
        self._mailings = mailings
        self._tickets = tickets

    @property
    def spec(self) -> JobSpec:
        return JobSpec(FORGET, self.blank, max_attempts=20)

    async def erase(
        self, tx: Tx, project_id: str, submission_ids: Sequence[str], *, tickets: bool
    ) -> None:
        """Has the copies of submissions blanked by a job, those in tickets if that is said."""
        copies = await copy_store.find(tx, project_id, submission_ids)
        if ids := sorted({copy.submission_id for copy in copies}):
            await self._jobs.enqueue(tx, _job(project_id, ids, tickets=tickets, last=False))

    async def erase_person(self, project_id: str, subscriber_id: str) -> None:
        """The same for all submissions of an erased person. Idempotent."""
        async with self._db.transaction() as tx:
            ids = await copy_store.detach(tx, project_id, subscriber_id)
            await self.erase(tx, project_id, ids, tickets=True)

    async def blank(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Blanks copies, and looks once more when what was under way has ended."""
        for job in jobs:
            await self._blank_all(ctx, job)

    async def _blank_all(self, ctx: JobContext, job: Job) -> None:
        project_id, ids = job.project_id or "", job.payload["submission_ids"]
        tickets = job.payload["tickets"]
        async with ctx.reading() as tx:
            copies = await copy_store.find(tx, project_id, ids)
        left = 0
        for copy in copies:
            if copy.kind != "ticket" or tickets:
                left += await self._blank(ctx, project_id, copy)
        async with ctx.completing(job) as tx:
            if left or not job.payload["last"]:
                run_at_ms = self._clock.now_ms() + AGAIN_AFTER_S * 1000
                again = _job(project_id, ids, tickets=tickets, last=True, run_at_ms=run_at_ms)
                await self._jobs.enqueue(tx, again)
            else:
                await copy_store.delete(tx, project_id, ids, tickets=tickets)

    async def _blank(self, ctx: JobContext, project_id: str, copy: Copy) -> int:
        """Blanks one copy, in small transactions; returns how many messages are still being sent."""
        changes = self._messages.changes
        async with ctx.transaction() as tx:
            if copy.kind == "ticket":
                await self._tickets.forget_source(tx, project_id, "form", copy.submission_id)
                return 0
            if copy.kind == "subscriber":
                return await changes.blank(tx, project_id, [copy.copy_id])
            await self._mailings.forget_variables(tx, project_id, copy.copy_id)
        after, left = "", 0
        while True:
            if ctx.stopping:
                raise Stopping
            # Apart from the transaction: the search goes through the project's messages.
            async with ctx.reading() as tx:
                found = await changes.of_mailing(tx, project_id, copy.copy_id, after, CHUNK)
            if not found:
                return left
            async with ctx.transaction() as tx:
                left += await changes.blank(tx, project_id, found)
            after = found[-1]


def _job(
    project_id: str,
    submission_ids: Sequence[str],
    *,
    tickets: bool,
    last: bool,
    run_at_ms: int | None = None,
) -> NewJob:
    payload = {"submission_ids": list(submission_ids), "tickets": tickets, "last": last}
    return NewJob(FORGET, payload, project_id=project_id, run_at_ms=run_at_ms)
