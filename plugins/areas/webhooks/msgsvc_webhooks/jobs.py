"""Background work: the attempts of deliveries, replays, and the hourly purge."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_parts, in_steps
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.delivering import deliver
from msgsvc_webhooks.replays import REPLAY, replay
from msgsvc_webhooks.service import DELIVER, Webhooks

if TYPE_CHECKING:
    from msgsvc_core.service import Service

DAY_MS = 24 * 3600 * 1000

#: Faults of our own (the database, a lost key) that a delivery survives; what receivers do is
#: not counted here, but in the retry plan.
FAULTS_ALLOWED = 20


async def purge(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Forgets old deliveries, and secrets that have ended; lets an older key of ours be retired."""
    webhooks, now_ms = ctx.service.get(Webhooks), ctx.service.clock.now_ms()
    before_ms = now_ms - webhooks.settings.journal_days * DAY_MS
    await in_parts(
        partial(_purge_secrets, ctx.service, now_ms),
        partial(_reseal, ctx.service),
        lambda: in_steps(ctx, lambda tx, most: journal.purge_attempts(tx, before_ms, most)),
        lambda: in_steps(ctx, lambda tx, most: journal.purge(tx, before_ms, most)),
    )


async def _purge_secrets(service: "Service", now_ms: int) -> None:
    async with service.db.transaction() as tx:
        await store.purge_secrets(tx, now_ms)


async def _reseal(service: "Service") -> None:
    async with service.db.transaction() as tx:
        await service.get(Webhooks).reseal(tx)


async def settle_dead(service: "Service", tx: Tx, job: Job, _error: str) -> None:
    """Ends a delivery whose job failed for good by a fault of ours; its event is in the feed."""
    delivery = await journal.find(tx, job.project_id or "", job.payload["delivery_id"])
    if delivery is not None and delivery.status == "pending":
        await journal.end(tx, [delivery], "failed", service.clock.now_ms())


async def begin_again(service: "Service", tx: Tx, job: Job) -> None:
    """Has the delivery of a dead job wait for it again; refuses where nothing would be sent."""
    await service.get(Webhooks).begin_again(tx, job)


def deliver_job(service: "Service") -> JobSpec:
    """The job that delivers to a webhook."""
    return JobSpec(
        DELIVER,
        deliver,
        max_attempts=FAULTS_ALLOWED,
        on_dead=partial(settle_dead, service),
        on_retry=partial(begin_again, service),
        few=True,
    )


REPLAY_JOB = JobSpec(REPLAY, replay)
PURGE_JOB = JobSpec("webhooks.purge", purge, every_s=3600)
