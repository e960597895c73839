"""Runs bulk actions: collects what each is about, then changes it in steps, and emits its end."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.bulk_actions import store
from msgsvc_core.bulk_actions.models import (
    BulkAction,
    BulkError,
    BulkStatus,
    Ended,
    Kind,
    shown_error,
)
from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Events
from msgsvc_core.jobs import Job, JobContext, JobQueue, JobSpec, NewJob
from msgsvc_core.jobs.contract import BULK, Stopping
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id

#: The event of a bulk action that has ended.
FINISHED = "bulk_action.finished"

#: Ids that are written down per transaction, and in one row.
COLLECTED = 1000

#: Steps after which the job goes to the end of its lane, so that others get their turn.
STEPS = 50

#: Milliseconds for which one waits for its confirmation.
CONFIRM_MS = DAY_MS

#: Old ones are deleted, in which nothing of a subscriber is left but for those that never went on.
RETENTION = RetentionRule("core_bulk_actions", "created_at_ms", 30 * DAY_MS)


class BulkActionFailed(Exception):
    """Raised by `BulkWork.change` before it has changed anything: nothing of this action can be done."""

    def __init__(self, error: BulkError) -> None:
        super().__init__(error)
        self.error = error


class BulkWork(Protocol):
    """What bulk actions of one kind are about, and what they do."""

    kind: Kind

    #: The name of the job.
    job: str

    #: Sentences for the errors that only this kind has.
    errors: Mapping[BulkError, str]

    def batch(self, bulk: BulkAction) -> int:
        """How many are changed per transaction, for which SQLite's other writers wait."""
        ...

    def needs_confirmation(self, bulk: BulkAction) -> bool:
        """Whether it waits until its number is confirmed."""
        ...

    async def select(
        self, tx: Tx, bulk: BulkAction, limit: int
    ) -> tuple[Sequence[str], str | None]:
        """The ids of the next ones that match, from the one after `bulk.collected_to` on, and the last id
        that was looked at; None if there are no more."""
        ...

    async def change(self, tx: Tx, bulk: BulkAction, ids: Sequence[str]) -> int:
        """Changes these; returns for how many it is done. Raises `BulkActionFailed`."""
        ...


class BulkActionEngine:
    """The bulk actions of one kind, of all projects. One is about `most` at most.

    What it is about is written down first, so exactly those are changed whose number was confirmed.
    """

    def __init__(
        self, work: BulkWork, *, clock: Clock, jobs: JobQueue, events: Events, most: int
    ) -> None:
        self._work = work
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._most = most

    @property
    def spec(self) -> JobSpec:
        return JobSpec(self._work.job, self.run, on_dead=self._give_up)

    async def start(
        self,
        tx: Tx,
        project_id: str,
        action: str,
        value: str | None,
        *,
        filters: str | None = None,
        ids: Sequence[str] = (),
    ) -> BulkAction:
        """Begins one about those that match `filters`, a JSON text for `BulkWork.select`, or about `ids`."""
        bulk = BulkAction(
            project_id=project_id,
            bulk_action_id=new_id("blk"),
            kind=self._work.kind,
            action=action,
            value=value,
            filters=filters,
            status="collecting",
            collected_to=None,
            total=0,
            done=0,
            failed=0,
            error=None,
            created_at_ms=self._clock.now_ms(),
            finished_at_ms=None,
        )
        await store.insert(tx, bulk)
        if filters is not None:
            await self._go_on(tx, bulk)
        else:
            named = sorted(set(ids))
            await store.add_targets(tx, bulk, named)
            await store.collected(tx, bulk, len(named), None)
            if await self._begin(tx, bulk):
                await self._go_on(tx, bulk)
        return await self.get(tx, project_id, bulk.bulk_action_id)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[BulkAction]:
        """Newest first; one more than `query.limit` if there are more."""
        kind = self._work.kind
        return await store.list_page(tx, project_id, kind, query.begin("blk"), query.fetch_limit)

    async def get(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Raises `NotFound`, for another project's and for one of another kind as well."""
        found = await store.find(tx, project_id, self._work.kind, bulk_action_id)
        if found is None:
            raise NotFound(
                "there is no bulk action {bulk_action_id!r}", bulk_action_id=bulk_action_id
            )
        return found

    async def confirm(self, tx: Tx, project_id: str, bulk_action_id: str, total: int) -> BulkAction:
        """Lets one that waits begin. Raises `ValidationFailed` for another number than its total, and
        `Conflict` if it does not wait, or has waited for a day."""
        bulk = await self.get(tx, project_id, bulk_action_id)
        if bulk.status == "waiting" and total != bulk.total:
            raise ValidationFailed("it is about {total}", field="total", total=bulk.total)
        after_ms = self._clock.now_ms() - CONFIRM_MS
        if not await store.set_status(
            tx, bulk, "running", before="waiting", made_after_ms=after_ms
        ):
            if bulk.status == "waiting":
                raise Conflict("it has waited for more than a day; start a new one", field="status")
            raise Conflict("it is {status}", field="status", status=bulk.shown_status)
        await self._go_on(tx, bulk)
        return await self.get(tx, project_id, bulk_action_id)

    async def cancel(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Ends one after the step that it is at; what is done stays. Raises `Conflict` if it has ended."""
        bulk = await self.get(tx, project_id, bulk_action_id)
        if not await self._finish(tx, project_id, bulk_action_id, "cancelled"):
            raise Conflict("it is {status}", field="status", status=bulk.shown_status)
        return await self.get(tx, project_id, bulk_action_id)

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Goes on where the last step ended, in any process; each step is a transaction."""
        for job in jobs:
            for _ in range(STEPS):
                if ctx.stopping:
                    raise Stopping
                if not await self._step(ctx, job):
                    break
            else:
                async with ctx.rescheduling(job, after_s=0, counts=False):
                    pass

    async def _step(self, ctx: JobContext, job: Job) -> bool:
        """False if there is nothing left to do, for now."""
        async with ctx.holding(job) as tx:
            # First, so that a cancellation is before the step or after it.
            project_id, bulk_action_id = job.project_id or "", job.payload["bulk_action_id"]
            bulk = await store.lock(tx, project_id, self._work.kind, bulk_action_id)
            if bulk is None:
                return False
            if bulk.status == "collecting":
                goes_on = await self._collect(tx, bulk)
            elif bulk.status == "running":
                goes_on = await self._change(tx, bulk)
            else:
                return False
            await ctx.progressed(tx, job)
            return goes_on

    async def _collect(self, tx: Tx, bulk: BulkAction) -> bool:
        """Writes down the next ones; False if it waits then, or has ended."""
        ids, last = await self._work.select(tx, bulk, COLLECTED)
        if bulk.total + len(ids) > self._most:
            await self._finish(tx, *_key(bulk), "failed", "too_many")
            return False
        if ids:
            await store.add_targets(tx, bulk, ids)
            await store.collected(tx, bulk, len(ids), last)
        return True if last is not None else await self._begin(tx, bulk)

    async def _begin(self, tx: Tx, bulk: BulkAction) -> bool:
        """All are written down; False if it waits now."""
        status: BulkStatus = "waiting" if self._work.needs_confirmation(bulk) else "running"
        await store.set_status(tx, bulk, status, before="collecting")
        return status == "running"

    async def _change(self, tx: Tx, bulk: BulkAction) -> bool:
        """Changes the next ones; False at the end."""
        ids = await store.next_targets(tx, bulk, self._work.batch(bulk))
        if not ids:
            await self._finish(tx, *_key(bulk), "completed")
            return False
        try:
            done = await self._work.change(tx, bulk, ids)
        except BulkActionFailed as refused:
            await self._finish(tx, *_key(bulk), "failed", refused.error)
            return False
        await store.count(tx, bulk, done=done, failed=len(ids) - done)
        return True

    async def _go_on(self, tx: Tx, bulk: BulkAction) -> None:
        payload = {"bulk_action_id": bulk.bulk_action_id}
        job = NewJob(self._work.job, payload, project_id=bulk.project_id, priority=BULK)
        await self._jobs.enqueue(tx, job)

    async def _give_up(self, tx: Tx, job: Job, _error: str) -> None:
        key = job.project_id or "", job.payload["bulk_action_id"]
        await self._finish(tx, *key, "failed", "job_failed")

    async def _finish(
        self,
        tx: Tx,
        project_id: str,
        bulk_action_id: str,
        status: Ended,
        error: BulkError | None = None,
    ) -> bool:
        """Ends one that is open and emits that, once; False if it has ended."""
        now_ms = self._clock.now_ms()
        if not await store.finish(tx, project_id, bulk_action_id, status, now_ms, error):
            return False
        ended = await self.get(tx, project_id, bulk_action_id)
        fields = {
            "bulk_action_id": bulk_action_id,
            "kind": ended.kind,
            "action": ended.action,
            "status": status,
            "total": ended.total,
            "processed": ended.reached,
            "failed": ended.failed,
            "code": error,
            "error": shown_error(error, self._work.errors),
        }
        await self._events.emit(tx, project_id, FINISHED, fields)
        return True


def _key(bulk: BulkAction) -> tuple[str, str]:
    return bulk.project_id, bulk.bulk_action_id
