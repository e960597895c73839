"""The rules of bulk actions, and their job."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.jobs import Job, JobContext, JobQueue, JobSpec, NewJob
from msgsvc_core.jobs.contract import BULK, Stopping
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import (
    Conflict,
    NotFound,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.bulk_actions import store
from msgsvc_core.subscribers.bulk_actions.models import (
    BulkAction,
    BulkActionBody,
    BulkError,
    BulkStatus,
)
from msgsvc_core.subscribers.filters import by_id
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.tags.service import Tags

JOB = "subscriber.bulk_action"

#: Subscribers that are written down per transaction, and in one row.
COLLECTED = 1000

#: Subscribers who are changed per transaction: some 10 ms, for which SQLite's other writers wait. Erasing one
#: takes ten times as long as a tag.
CHANGED, ERASED = 100, 10

#: Steps after which the job goes to the end of its lane, so that others get their turn.
STEPS = 50

#: Milliseconds for which an erasure waits for its confirmation.
CONFIRM_MS = DAY_MS

#: Old ones are deleted, in which nothing of a subscriber is left but for those that never went on.
RETENTION = RetentionRule("core_bulk_actions", "created_at_ms", 30 * DAY_MS)


class BulkActions:
    """`service.bulk_actions`. One is about `most` subscribers at most.

    Whom it is about is written down first, so an erasure deletes exactly those whose number was confirmed.
    """

    def __init__(
        self, *, clock: Clock, jobs: JobQueue, subscribers: Subscribers, tags: Tags, most: int
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._subscribers = subscribers
        self._tags = tags
        self._most = most

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.run, on_dead=self._give_up)

    async def start(self, tx: Tx, project_id: str, body: BulkActionBody) -> BulkAction:
        """Raises `ValidationFailed` for what does not belong together, `NotFound` for a tag to be removed
        that there is not, and `Conflict` beyond the limit of tags."""
        _check(body)
        tag_id: str | None = None
        if body.tag is not None:
            if body.action == "add_tag":
                await self._tags.ensure(tx, project_id, [body.tag])
            else:
                await self._tags.get(tx, project_id, body.tag)
            [tag_id] = await self._tags.ids_of(tx, project_id, [body.tag])
        filters: SubscriberFilters | None = None
        if body.subscriber_ids is None:
            filters = body.filters or SubscriberFilters()
            if filters.channel is not None:
                await self._subscribers.check_channel(tx, project_id, filters.channel)
            # Renaming the tag meanwhile changes nothing.
            filters = await by_id(tx, project_id, filters)
        bulk = BulkAction(
            project_id=project_id,
            bulk_action_id=new_id("blk"),
            action=body.action,
            tag_id=tag_id,
            filters=None if filters is None else _to_json(filters),
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
        if body.subscriber_ids is None:
            await self._go_on(tx, bulk)
        else:
            ids = sorted(set(body.subscriber_ids))
            await store.add_targets(tx, bulk, ids)
            await store.collected(tx, bulk, len(ids), None)
            if await self._begin(tx, bulk):
                await self._go_on(tx, bulk)
        return await self.get(tx, project_id, bulk.bulk_action_id)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[BulkAction]:
        """Newest first; one more than `query.limit` if there are more."""
        return await store.list_page(tx, project_id, query.after, query.fetch_limit)

    async def get(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Raises `NotFound`, for another project's as well."""
        found = await store.find(tx, project_id, bulk_action_id)
        if found is None:
            raise NotFound(
                "there is no bulk action {bulk_action_id!r}", bulk_action_id=bulk_action_id
            )
        return found

    async def confirm(self, tx: Tx, project_id: str, bulk_action_id: str, total: int) -> BulkAction:
        """Lets an erasure begin. Raises `ValidationFailed` for another number than its total, and `Conflict`
        if it does not wait, or has waited for a day."""
        bulk = await self.get(tx, project_id, bulk_action_id)
        if bulk.status == "waiting" and total != bulk.total:
            raise ValidationFailed("it is about {total}", field="total", total=bulk.total)
        after_ms = self._clock.now_ms() - CONFIRM_MS
        if not await store.set_status(
            tx, bulk, "running", before="waiting", made_after_ms=after_ms
        ):
            if bulk.status == "waiting":
                raise Conflict("it has waited for more than a day; start it anew", field="status")
            raise Conflict("it is {status}", field="status", status=bulk.status)
        await self._go_on(tx, bulk)
        return await self.get(tx, project_id, bulk_action_id)

    async def cancel(self, tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction:
        """Ends one after the step that it is at; what is done stays. Raises `Conflict` if it has ended."""
        bulk = await self.get(tx, project_id, bulk_action_id)
        now_ms = self._clock.now_ms()
        if not await store.finish(tx, project_id, bulk_action_id, "cancelled", now_ms):
            raise Conflict("it is {status}", field="status", status=bulk.status)
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
            bulk = await store.lock(tx, job.project_id or "", job.payload["bulk_action_id"])
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
        filters = _from_json(bulk.filters or "{}")
        ids, last = await store.select(tx, bulk.project_id, filters, bulk.collected_to, COLLECTED)
        if bulk.total + len(ids) > self._most:
            await self._fail(tx, bulk, "too_many")
            return False
        if ids:
            await store.add_targets(tx, bulk, ids)
            await store.collected(tx, bulk, len(ids), last)
        return True if last is not None else await self._begin(tx, bulk)

    async def _begin(self, tx: Tx, bulk: BulkAction) -> bool:
        """Everybody is written down: an erasure waits now."""
        status: BulkStatus = "waiting" if bulk.action == "erase" else "running"
        await store.set_status(tx, bulk, status, before="collecting")
        return status == "running"

    async def _change(self, tx: Tx, bulk: BulkAction) -> bool:
        """Changes the next ones; False at the end."""
        ids = await store.next_targets(tx, bulk, ERASED if bulk.action == "erase" else CHANGED)
        if not ids:
            now_ms = self._clock.now_ms()
            await store.finish(tx, *_key(bulk), "completed", now_ms)
            return False
        tag: str | None = None
        if bulk.tag_id is not None:
            # Locked before the subscribers, in the order of others.
            names = await self._tags.names_of(tx, bulk.project_id, [bulk.tag_id])
            if not names:
                await self._fail(tx, bulk, "tag_deleted")
                return False
            [tag] = names
        there = await store.existing(tx, bulk.project_id, ids)
        done = 0
        for subscriber_id in sorted(there):
            try:
                await self._change_one(tx, bulk, subscriber_id, tag)
                done += 1
            except SubscriberNotFound:
                # Erased concurrently.
                pass
        await store.count(tx, bulk, done=done, failed=len(ids) - done)
        return True

    async def _change_one(
        self, tx: Tx, bulk: BulkAction, subscriber_id: str, tag: str | None
    ) -> None:
        if tag is None:
            await self._subscribers.erase(tx, bulk.project_id, subscriber_id)
        elif bulk.action == "add_tag":
            await self._tags.assign(tx, bulk.project_id, subscriber_id, [tag])
        else:
            await self._tags.remove(tx, bulk.project_id, subscriber_id, tag)

    async def _go_on(self, tx: Tx, bulk: BulkAction) -> None:
        payload = {"bulk_action_id": bulk.bulk_action_id}
        job = NewJob(JOB, payload, project_id=bulk.project_id, priority=BULK)
        await self._jobs.enqueue(tx, job)

    async def _give_up(self, tx: Tx, job: Job, _error: str) -> None:
        key = job.project_id or "", job.payload["bulk_action_id"]
        await store.finish(tx, *key, "failed", self._clock.now_ms(), "job_failed")

    async def _fail(self, tx: Tx, bulk: BulkAction, error: BulkError) -> None:
        await store.finish(tx, *_key(bulk), "failed", self._clock.now_ms(), error)


def _check(body: BulkActionBody) -> None:
    if body.action == "erase" and body.tag is not None:
        raise ValidationFailed("is of `add_tag` and `remove_tag`", field="tag")
    if body.action != "erase" and body.tag is None:
        raise ValidationFailed("give the tag", field="tag")
    has_filters = body.filters is not None and body.filters != SubscriberFilters()
    if [body.all, has_filters, body.subscriber_ids is not None].count(True) != 1:
        raise ValidationFailed(
            "give one of them: true, at least one filter, or ids",
            field="all, filters, subscriber_ids",
        )


def _key(bulk: BulkAction) -> tuple[str, str]:
    return bulk.project_id, bulk.bulk_action_id


def _to_json(filters: SubscriberFilters) -> str:
    return filters.model_dump_json(exclude_none=True)


def _from_json(text: str) -> SubscriberFilters:
    return SubscriberFilters.model_construct(**from_json(text))
