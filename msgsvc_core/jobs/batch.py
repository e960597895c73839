"""One batch of jobs in one handler: its transactions, and the handling of failed jobs."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial

import structlog

from msgsvc_core.db import Database, Tx
from msgsvc_core.db.shrinking import LEAST_PAGES, MOST_PAGES, count_excess, shrink_some
from msgsvc_core.jobs import store
from msgsvc_core.jobs.contract import (
    Gate,
    Job,
    JobSpec,
    LeaseLost,
    NewJob,
    Reschedule,
    Retry,
    Stopping,
)
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.jobs.steps import repeat
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.tracing import Span, Tracing, within

#: Crashes of runners during a job after which the job is considered their cause: its maximum attempts, but at
#: most the second number, and at least the first, since power cuts and deployments cause crashes too.
LEAST_CRASHES, MOST_CRASHES = 3, 6

#: Attribute of a job's span: `rescheduled` if it runs again, `dead` if it became a dead letter.
OUTCOME = "msgsvc.job.outcome"

#: Milliseconds after which a job is no longer part of the trace that enqueued it, but begins one that links
#: to it: what stores traces expects them to end.
TRACE_MS = HOUR_MS

log = structlog.get_logger(__name__)


class Batch:
    """Runs `spec.handler` over `jobs`; implements `JobContext`.

    `settled` is called with each job that is removed or rescheduled while the handler continues with
    others.

    With `tracing` each job has a span. That of a single job is current while the handler runs; of several,
    none is, and what is done for one of them is done `within` its span.
    """

    def __init__(
        self,
        spec: JobSpec,
        jobs: Sequence[Job],
        *,
        db: Database,
        clock: Clock,
        queue: JobQueue,
        runner_id: str,
        stopping: Callable[[], bool],
        settled: Callable[[str], None] = lambda job_id: None,
        gate: Gate | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._queue = queue
        self._spec = spec
        self._runner_id = runner_id
        self._stopping = stopping
        self._settled = settled
        self._gate = gate
        self._spans: dict[str, Span] = {}
        if tracing is not None:
            jobs = [self._traced(tracing, job, len(jobs)) for job in jobs]
        self._open = {job.job_id: job for job in jobs}

    @property
    def stopping(self) -> bool:
        return self._stopping()

    async def run(self) -> None:
        """Runs the handler; a job that fails is rescheduled or dead-lettered, and the reason logged.

        Raises only when the database is unavailable; the leases then expire, and another runner takes the
        jobs.
        """
        only = next(iter(self._spans.values())) if len(self._spans) == 1 else None
        try:
            with within(only):
                await self._run()
        finally:
            for job_id in list(self._spans):
                self._end_span(job_id)

    async def _run(self) -> None:
        await self._dead_letter_poison()
        jobs = list(self._open.values())
        if not jobs:
            return
        try:
            await self._spec.handler(self, jobs)
            if self._open:
                async with self.completing(*self._open.values()):
                    pass
        except LeaseLost:
            log.warning("job_lease_lost", job=self._spec.name)
        except Stopping:
            await self._reschedule_all(0, None, counts=False)
        except Retry as retry:
            self._fail_spans(retry)
            await self._reschedule_all(retry.after_s, str(retry), counts=retry.counts)
        except Exception as error:
            log.exception("job_failed", job=self._spec.name, attempts=jobs[0].attempts)
            self._fail_spans(error)
            await self._fail_all(f"{type(error).__name__}: {error}")

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        return self._db.transaction(background=True)

    def statement(self) -> AbstractAsyncContextManager[Tx]:
        return self._db.transaction(inline=self._spec.inline, background=True, one_statement=True)

    def reading(self) -> AbstractAsyncContextManager[Tx]:
        return self._db.read()

    @asynccontextmanager
    async def holding(self, *jobs: Job) -> AsyncIterator[Tx]:
        async with self._db.transaction(inline=self._spec.inline, background=True) as tx:
            if not await store.lock(tx, jobs, runner_id=self._runner_id):
                raise LeaseLost
            yield tx

    async def progressed(self, tx: Tx, *jobs: Job) -> None:
        if suspects := [job for job in jobs if job.deliveries > job.attempts]:
            await store.reset_deliveries(tx, suspects)

    @asynccontextmanager
    async def completing(
        self, *jobs: Job, first: Callable[[Tx], Awaitable[object]] | None = None
    ) -> AsyncIterator[Tx]:
        async with self._settling(jobs, (), first) as tx:
            yield tx
            await self._enqueue_next_run(tx)

    @asynccontextmanager
    async def rescheduling(
        self, job: Job, *, after_s: float, counts: bool = True
    ) -> AsyncIterator[Tx]:
        async with self.putting_back([Reschedule(job, self._in(after_s), counts)]) as tx:
            yield tx

    @asynccontextmanager
    async def putting_back(self, back: Sequence[Reschedule]) -> AsyncIterator[Tx]:
        async with self.settling((), back) as tx:
            yield tx

    @asynccontextmanager
    async def settling(
        self, done: Sequence[Job], back: Sequence[Reschedule] = ()
    ) -> AsyncIterator[Tx]:
        async with self._settling(done, back) as tx:
            yield tx

    @asynccontextmanager
    async def _settling(
        self,
        done: Sequence[Job],
        back: Sequence[Reschedule],
        first: Callable[[Tx], Awaitable[object]] | None = None,
    ) -> AsyncIterator[Tx]:
        async with self._db.transaction(inline=self._spec.inline, background=True) as tx:
            if first is not None:
                await first(tx)
            if done and not await store.complete(tx, done, runner_id=self._runner_id):
                raise LeaseLost
            if refused := [each.job for each in back if each.refused]:
                await store.record_refused(tx, refused, self._clock.now_ms())
            await self._release(tx, [each.job for each in back if each.at_ms is None])
            waiting = [
                store.Waiting(each.job, each.at_ms, _counted(each.job, counts=each.counts))
                for each in back
                if each.at_ms is not None
            ]
            if await self._reschedule(tx, waiting) < len(waiting):
                raise LeaseLost
            yield tx
        for each in back:
            if each.job.span is not None:
                each.job.span.set(OUTCOME, "rescheduled")
        self.forget(*done, *(each.job for each in back))

    async def shrink_file(self, *, above: int = 0) -> None:
        if await count_excess(self._db) > above:
            step = partial(shrink_some, self._db)
            await repeat(self, step, least=LEAST_PAGES, most=MOST_PAGES)

    def forget(self, *jobs: Job) -> None:
        for job in jobs:
            if self._open.pop(job.job_id, None):
                self._end_span(job.job_id)
                self._settled(job.job_id)

    async def _release(self, tx: Tx, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        if not await store.release_jobs(tx, jobs, runner_id=self._runner_id):
            raise LeaseLost
        now_ms = self._clock.now_ms()
        for lane in {job.lane for job in jobs}:
            tx.on_commit(partial(self._queue.wake, lane, now_ms))

    async def _reschedule(self, tx: Tx, waiting: Sequence[store.Waiting]) -> int:
        """Writes the reschedules, and wakes the lanes when they are due; returns how many jobs were not
        lost."""
        kept = await store.reschedule(tx, waiting, runner_id=self._runner_id)
        due_ms: dict[str, int] = {}
        for one in waiting:
            lane = one.job.lane
            if one.job.job_id in kept:
                due_ms[lane] = min(one.run_at_ms, due_ms.get(lane, one.run_at_ms))
            else:
                log.warning("job_lease_lost", job=one.job.name, job_id=one.job.job_id)
        for lane, at_ms in due_ms.items():
            tx.on_commit(partial(self._queue.wake, lane, at_ms))
        return len(kept)

    async def _reschedule_all(self, after_s: float, error: str | None, *, counts: bool) -> None:
        at_ms = self._in(after_s)
        waiting = [
            store.Waiting(job, at_ms, _counted(job, counts=counts), error)
            for job in self._open.values()
        ]
        for span in self._spans.values():
            span.set(OUTCOME, "rescheduled")
        async with self._db.transaction(background=True) as tx:
            await self._fall_back(tx, waiting)

    async def _fail_all(self, error: str) -> None:
        spec = self._spec
        # The same for all, or some would overtake earlier ones.
        spread = 1 + random.uniform(-spec.jitter, spec.jitter)  # noqa: S311 - no secret
        waiting: list[store.Waiting] = []
        async with self._db.transaction(background=True) as tx:
            for job in self._open.values():
                if job.attempts >= spec.max_attempts and spec.every_s is None:
                    await self._dead_letter(tx, job, error)
                    continue
                at_ms = self._in(spec.backoff(job.attempts) * spread)
                if job.span is not None:
                    job.span.set(OUTCOME, "rescheduled")
                waiting.append(store.Waiting(job, at_ms, job.attempts, error))
            await self._fall_back(tx, waiting)

    async def _fall_back(self, tx: Tx, waiting: Sequence[store.Waiting]) -> None:
        """Reschedules jobs that the handler did not, and that the lane's gate has not recorded yet."""
        if self._gate is not None:
            for one in waiting:
                self._gate.put_back(one.job, one.run_at_ms)
        await self._reschedule(tx, waiting)

    def _in(self, after_s: float) -> int:
        """The time in `after_s` seconds, in Unix milliseconds."""
        return self._clock.now_ms() + round(after_s * 1000)

    async def _dead_letter_poison(self) -> None:
        """Dead-letters jobs that were claimed repeatedly without an outcome: each claim ended in a crash."""
        allowed = min(MOST_CRASHES, max(LEAST_CRASHES, self._spec.max_attempts))
        for job in list(self._open.values()):
            if job.deliveries - job.attempts < allowed:
                continue
            async with self._db.transaction(background=True) as tx:
                await self._dead_letter(tx, job, "its runner died each time")
            self.forget(job)

    async def _dead_letter(self, tx: Tx, job: Job, error: str) -> None:
        """Makes a job a dead letter, and calls `on_dead` of its kind."""
        if not await store.dead_letter(tx, job, runner_id=self._runner_id, error=error):
            log.warning("job_lease_lost", job=job.name, job_id=job.job_id)
            return
        log.error("job_buried", job=job.name, job_id=job.job_id, deliveries=job.deliveries)
        if job.span is not None:
            job.span.set(OUTCOME, "dead")
        if self._spec.on_dead is None:
            return
        try:
            async with tx.savepoint():
                await self._spec.on_dead(tx, job, error)
        except Exception:
            # Otherwise the job would be retried for ever, and crash its runner each time.
            log.exception("job_on_dead_failed", job=job.name, job_id=job.job_id)

    def _traced(self, tracing: Tracing, job: Job, count: int) -> Job:
        """The job with a span of its run."""
        is_late = self._clock.now_ms() - job.created_at_ms > TRACE_MS
        is_own = self._spec.own_trace or is_late
        attributes: dict[str, str | int] = {
            "messaging.system": "msgsvc",
            "messaging.operation.type": "process",
            "messaging.destination.name": job.name,
            "messaging.message.id": job.job_id,
            "msgsvc.job.attempt": job.attempts,
        }
        if job.project_id is not None:
            attributes["msgsvc.project_id"] = job.project_id
        if count > 1:
            attributes["messaging.batch.message_count"] = count
        span = tracing.start(
            f"process {job.name}",
            "consumer",
            attributes,
            parent=None if is_own else job.traceparent,
            link=job.traceparent if is_own else None,
        )
        if span is None:
            return job
        self._spans[job.job_id] = span
        return replace(job, span=span)

    def _end_span(self, job_id: str) -> None:
        if (span := self._spans.pop(job_id, None)) is not None:
            span.end()

    def _fail_spans(self, error: Exception) -> None:
        for span in self._spans.values():
            span.fail(type(error).__name__)

    async def _enqueue_next_run(self, tx: Tx) -> None:
        if self._spec.every_s is not None:
            run_at_ms = self._clock.now_ms() + round(self._spec.every_s * 1000)
            await self._queue.enqueue(tx, recurring(self._spec, run_at_ms))


def _counted(job: Job, *, counts: bool) -> int:
    """Attempts of a job that is rescheduled."""
    return job.attempts if counts else job.attempts - 1


#: The key of recurring jobs: there is one open job per kind.
RECURRING = "recurring"


def recurring(spec: JobSpec, run_at_ms: int) -> NewJob:
    """The one open job of a recurring kind."""
    return NewJob(spec.name, key=RECURRING, run_at_ms=run_at_ms, traced=False)
