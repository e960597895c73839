"""Background work: what became of the messages with codes, and the hourly purge."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.channels import Reason
from msgsvc_core.channels.outbox import EXPIRED, SENT
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_steps
from msgsvc_core.service import Service
from msgsvc_otp import events, store
from msgsvc_otp.service import TOLD, emit

#: Days for which a code's outcome can be looked up.
KEPT_DAYS = 7

DAY_MS = 24 * 3600 * 1000


async def told(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """The messenger took a message with a code, or did not."""
    async with ctx.completing(*jobs) as tx:
        for job in jobs:
            end = _sent if job.payload["outcome"] == SENT else _failed
            await end(ctx.service, tx, job.payload)


async def _sent(service: Service, tx: Tx, told: Mapping[str, Any]) -> None:
    project_id = told["project_id"]
    code = await store.mark_sent(tx, project_id, told["otp_id"], now_ms=service.clock.now_ms())
    # None: told before, or the person was erased meanwhile.
    if code is not None and code.subscriber_id is not None:
        subscriber = await service.subscribers.find(tx, project_id, code.subscriber_id)
        await emit(service, tx, events.SENT, code, subscriber)


async def _failed(service: Service, tx: Tx, told: Mapping[str, Any]) -> None:
    project_id, outcome = told["project_id"], told["outcome"]
    code = await store.find(tx, project_id, told["otp_id"])
    if code is None or code.subscriber_id is None:
        return
    if outcome != EXPIRED and Reason(outcome).should_unsubscribe:
        subscriber = await service.subscribers.find(tx, project_id, code.subscriber_id)
        # The person before the code, as an erasure has them: two who go the other way would wait for
        # each other.
        await service.subscribers.block(tx, told["channel"], subscriber.user_id, reason=outcome)
    await store.mark_failed(tx, project_id, code.otp_id, outcome)


async def purge(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Deletes codes that were asked for more than `KEPT_DAYS` ago."""
    before_ms = ctx.service.clock.now_ms() - KEPT_DAYS * DAY_MS
    await in_steps(ctx, lambda tx, most: store.purge(tx, before_ms, most))


TOLD_JOB = JobSpec(TOLD, told)
PURGE_JOB = JobSpec("otp.purge", purge, every_s=3600)
