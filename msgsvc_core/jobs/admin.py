"""Operator actions on jobs: run now, or discard.

Both call the hooks of the job's kind (`JobSpec.on_dead`, `on_retry`). Refusals contain no values: the
dashboard translates them.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.contract import Job, JobSpec
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError, Conflict, NotFound

#: The error of a discarded job, for what waits for it.
DISCARDED = "an operator discarded it"

log = structlog.get_logger(__name__)


class JobAdmin:
    """`service.job_admin`. `specs` returns the kinds of jobs of all loaded plugins."""

    def __init__(
        self, *, queue: JobQueue, clock: Clock, specs: Callable[[], Sequence[JobSpec]]
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._specs = specs

    async def retry(self, tx: Tx, job_id: str) -> None:
        """Makes a job due now; a dead letter gets all its attempts again.

        Raises `NotFound`, `Conflict`, and the errors of its `on_retry`; then roll back `tx`, or the savepoint
        around this call.
        """
        held = await _lock(tx, job_id)
        if held.state == "dead":
            if held.key is not None and await self._queue.has_open(tx, held.job.name, held.key):
                raise Conflict("another job with the same name and key is open and does this work")
            await self._reset(tx, held.job)
        now_ms = self._clock.now_ms()
        await inspection.make_due(tx, job_id, now_ms)
        tx.on_commit(partial(self._queue.wake, held.job.lane, now_ms))

    async def discard(self, tx: Tx, job_id: str) -> None:
        """Deletes a job. What waits for a job that is not dead is settled as if it had become a dead letter.

        Raises `NotFound` and `Conflict`; then roll back `tx`, or the savepoint around this call.
        """
        held = await _lock(tx, job_id)
        # First, because `on_dead` may enqueue another job with the same key.
        await inspection.remove(tx, job_id)
        spec = self._spec(held.job.name)
        if held.state != "dead" and spec is not None and spec.on_dead is not None:
            await _settled(held.job, spec.on_dead(tx, held.job, DISCARDED))

    async def withdraw(self, tx: Tx, job_id: str) -> None:
        """Deletes a waiting job that another copy of the database may have done, or one whose process has
        died. What waits for it is settled as in doubt.

        Raises `NotFound` and `Conflict`, also for a kind that can't be withdrawn, and while a process has a
        lease on the job; then roll back `tx`, or the savepoint around this call.
        """
        held = await _find_locked(tx, job_id)
        if (held.leased_until_ms or 0) > self._clock.now_ms():
            raise Conflict(
                "a process is working on it, or its lease has not ended; try again in a minute"
            )
        spec = self._spec(held.job.name)
        if held.state == "dead" or spec is None or spec.on_withdrawn is None:
            raise Conflict("only waiting messages and broadcasts can be withdrawn")
        await inspection.remove(tx, job_id)
        await _settled(held.job, spec.on_withdrawn(tx, held.job))

    async def _reset(self, tx: Tx, job: Job) -> None:
        """Undoes what was settled when the job became a dead letter."""
        spec = self._spec(job.name)
        if spec is None:
            # Only the plugin knows what it settled.
            raise Conflict("its plugin is not loaded; load it first")
        if spec.on_retry is not None:
            await _settled(job, spec.on_retry(tx, job))
        elif spec.on_dead is not None:
            raise Conflict(
                "what waited for it was settled when it failed for good, so that running it again would"
                " do nothing; docs/guides/scaling-out.md says what to do instead"
            )

    def _spec(self, name: str) -> JobSpec | None:
        return next((spec for spec in self._specs() if spec.name == name), None)


async def _find_locked(tx: Tx, job_id: str) -> inspection.LockedJob:
    held = await inspection.lock(tx, job_id)
    if held is None:
        raise NotFound("there is no such job; what is done is not kept")
    return held


async def _lock(tx: Tx, job_id: str) -> inspection.LockedJob:
    held = await _find_locked(tx, job_id)
    if held.state == "running":
        raise Conflict("it is running; wait until it finishes")
    return held


async def _settled(job: Job, hook: Awaitable[None]) -> None:
    try:
        await hook
    except (ApiError, DatabaseUnavailable):
        raise
    except Exception:
        # An error of a plugin must not prevent the operator from changing other jobs.
        log.exception("job_not_settled", job=job.name, job_id=job.job_id)
        raise Conflict("what waits for it could not be settled; the log says why") from None
