"""What an operator does about a job: has it run now, or discards it.

Both keep to what the kinds of jobs promise to those who wait for one (`JobSpec.on_dead`, `on_retry`).
What is refused, for dashboards to translate, has no values in it.
"""

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.jobs import letters
from msgsvc_core.jobs.contract import Job, JobSpec
from msgsvc_core.kernel.errors import ApiError, Conflict, NotFound

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: The error that what waits for a discarded job is settled with.
DISCARDED = "an operator discarded it"

log = structlog.get_logger(__name__)


async def retry(service: "Service", tx: Tx, job_id: str) -> None:
    """Makes a job due at once; a dead one has all its attempts again.

    Raises `NotFound`, `Conflict`, and what `on_retry` of its kind refuses it with: then undo `tx`, or
    the savepoint that this was called in.
    """
    held = await _hold(tx, job_id)
    if held.state == "dead":
        if held.key is not None and await service.jobs.has_open(tx, held.job.name, held.key):
            raise Conflict("another job of its name and key is open, and does its work")
        await _put_back(service, tx, held.job)
    now_ms = service.clock.now_ms()
    await letters.make_due(tx, job_id, now_ms)
    tx.on_commit(partial(service.jobs.wake, held.job.lane, now_ms))


async def discard(service: "Service", tx: Tx, job_id: str) -> None:
    """Removes a job for good. Who waits for one that is not dead is told as if it had just died.

    Raises `NotFound` and `Conflict`: then undo `tx`, or the savepoint that this was called in.
    """
    held = await _hold(tx, job_id)
    # First, for `on_dead` may enqueue another of its key.
    await letters.remove(tx, job_id)
    spec = _spec(service, held.job.name)
    if held.state != "dead" and spec is not None and spec.on_dead is not None:
        await _settled(held.job, spec.on_dead(service, tx, held.job, DISCARDED))


async def _hold(tx: Tx, job_id: str) -> letters.Held:
    held = await letters.hold(tx, job_id)
    if held is None:
        raise NotFound("there is no such job; what is done is not kept")
    if held.state == "running":
        raise Conflict("it is running; wait until it has ended")
    return held


async def _put_back(service: "Service", tx: Tx, job: Job) -> None:
    """Undoes what was settled when the job became a dead letter."""
    spec = _spec(service, job.name)
    if spec is None:
        # What was settled, only its plugin knows.
        raise Conflict("its plugin is not loaded; load it first")
    if spec.on_retry is not None:
        await _settled(job, spec.on_retry(service, tx, job))
    elif spec.on_dead is not None:
        raise Conflict(
            "what waited for it was settled when it failed for good, so that running it again would do"
            " nothing; docs/guides/scaling-out.md says what to do instead"
        )


def _spec(service: "Service", name: str) -> JobSpec | None:
    return next((spec for spec in service.job_specs if spec.name == name), None)


async def _settled(job: Job, hook: Awaitable[None]) -> None:
    try:
        await hook
    except (ApiError, DatabaseUnavailable):
        raise
    except Exception:
        # A plugin's fault must not keep the operator from the other jobs.
        log.exception("job_not_settled", job=job.name, job_id=job.job_id)
        raise Conflict("what waits for it could not be settled; the log says why") from None
