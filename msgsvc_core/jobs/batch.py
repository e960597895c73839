"""One batch of jobs in one handler: its transactions, and what becomes of jobs that fail."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs import store
from msgsvc_core.jobs.contract import Job, JobSpec, LeaseLost, NewJob, Retry

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Claims without an outcome after which a job is taken to kill its worker.
CRASHES_ALLOWED = 5

log = structlog.get_logger(__name__)


class Batch:
    """Runs `spec.handler` over `jobs`; implements `JobContext`."""

    def __init__(
        self, service: "Service", spec: JobSpec, jobs: Sequence[Job], runner_id: str
    ) -> None:
        self.service = service
        self._spec = spec
        self._runner_id = runner_id
        self._open = {job.job_id: job for job in jobs}

    async def run(self) -> None:
        """Runs the handler; a job that fails is put back or buried, and the reason is logged.

        Raises only when the database is away; the leases then run out, and the jobs go on elsewhere.
        """
        await self._bury_poison()
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
        except Retry as retry:
            await self._put_back_all(retry.after_s, str(retry), counts=retry.counts)
        except Exception as error:
            log.exception("job_failed", job=self._spec.name, attempts=jobs[0].attempts)
            await self._fail_all(f"{type(error).__name__}: {error}")

    @asynccontextmanager
    async def completing(self, *jobs: Job) -> AsyncIterator[Tx]:
        async with self.service.db.transaction() as tx:
            if jobs and not await store.complete(tx, jobs, runner_id=self._runner_id):
                raise LeaseLost
            yield tx
            await self._enqueue_next_run(tx)
        self._forget(jobs)

    @asynccontextmanager
    async def rescheduling(
        self, job: Job, *, after_s: float, counts: bool = True
    ) -> AsyncIterator[Tx]:
        async with self.service.db.transaction() as tx:
            if not await self._put_back(tx, job, after_s, error=None, counts=counts):
                raise LeaseLost
            yield tx
        self._forget([job])

    def _forget(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self._open.pop(job.job_id, None)

    async def _put_back(
        self, tx: Tx, job: Job, after_s: float, *, error: str | None, counts: bool
    ) -> bool:
        """Writes the wait, and has the lane woken when it is over; False if the lease is lost."""
        run_at_ms = self.service.clock.now_ms() + round(after_s * 1000)
        kept = await store.put_back(
            tx,
            job,
            runner_id=self._runner_id,
            run_at_ms=run_at_ms,
            attempts=job.attempts if counts else job.attempts - 1,
            error=error,
        )
        if kept:
            tx.on_commit(lambda: self.service.jobs.wake(job.lane, run_at_ms))
        else:
            log.warning("job_lease_lost", job=job.name, job_id=job.job_id)
        return kept

    async def _put_back_all(self, after_s: float, error: str, *, counts: bool = True) -> None:
        async with self.service.db.transaction() as tx:
            for job in self._open.values():
                await self._put_back(tx, job, after_s, error=error, counts=counts)

    async def _fail_all(self, error: str) -> None:
        spec = self._spec
        async with self.service.db.transaction() as tx:
            for job in self._open.values():
                if job.attempts >= spec.max_attempts and spec.every_s is None:
                    await store.bury(tx, job, runner_id=self._runner_id, error=error)
                    continue
                spread = 1 + random.uniform(-spec.jitter, spec.jitter)  # noqa: S311 - no secret
                await self._put_back(
                    tx, job, spec.backoff(job.attempts) * spread, error=error, counts=True
                )

    async def _bury_poison(self) -> None:
        """Buries jobs that were claimed again and again without any outcome, a crash each time."""
        for job in list(self._open.values()):
            if job.deliveries - job.attempts <= CRASHES_ALLOWED:
                continue
            log.error("job_buried", job=job.name, job_id=job.job_id, deliveries=job.deliveries)
            async with self.service.db.transaction() as tx:
                await store.bury(
                    tx, job, runner_id=self._runner_id, error="its runner died each time"
                )
            self._forget([job])

    async def _enqueue_next_run(self, tx: Tx) -> None:
        if self._spec.every_s is not None:
            run_at_ms = self.service.clock.now_ms() + round(self._spec.every_s * 1000)
            await self.service.jobs.enqueue(tx, recurring(self._spec, run_at_ms))


def recurring(spec: JobSpec, run_at_ms: int) -> NewJob:
    """The one open job of a recurring kind."""
    return NewJob(spec.name, key="recurring", run_at_ms=run_at_ms)
