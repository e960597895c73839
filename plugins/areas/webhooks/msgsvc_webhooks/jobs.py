"""Background work: the attempts of deliveries, and the hourly purge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_core.security import DecryptionError
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt, Delivery, DeliveryStatus
from msgsvc_webhooks.retries import NextAttempt, Verdict, judge, next_attempt
from msgsvc_webhooks.service import DELIVER, Webhooks

if TYPE_CHECKING:
    from msgsvc_core.service import Service

DAY_MS = 24 * 3600 * 1000

#: Faults of our own (the database, a lost key) that a delivery survives; what receivers do is
#: not counted here, but in the retry plan.
FAULTS_ALLOWED = 20

#: What the journal says of a delivery that could not be signed.
UNREADABLE = "the service can't read this webhook's secret; rotate it, or ask the operator"

_FINAL: dict[Verdict, DeliveryStatus] = {
    Verdict.DELIVERED: "delivered",
    Verdict.RETRY: "failed",  # at the end of the plan
    Verdict.FAILED: "failed",
    Verdict.GONE: "failed",
}

log = structlog.get_logger(__name__)


async def deliver(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Makes the next attempt of each delivery, and plans the one after it."""
    for job in jobs:
        await _deliver(ctx, job)


async def _deliver(ctx: JobContext, job: Job) -> None:
    service = ctx.service
    webhooks = service.get(Webhooks)
    project_id = job.project_id or ""
    async with service.db.read() as tx:
        delivery = await journal.find(tx, project_id, job.payload["delivery_id"])
        if delivery is None or delivery.status != "pending":
            return  # purged, or finished in another way; the runner removes the job
        webhook = await store.find(tx, project_id, delivery.webhook_id)
        sealed = await webhooks.sealed_secrets(tx, project_id, delivery.webhook_id)
    if webhook is None or webhook.status != "active":
        async with ctx.completing(job) as tx:
            await journal.cancel(tx, delivery, service.clock.now_ms())
        return
    try:
        secrets = webhooks.unseal(sealed)
    except DecryptionError:
        # Planned like any failed attempt: the operator may bring the key back, and the journal
        # tells the project meanwhile.
        attempt = Attempt(service.clock.now_ms(), 0, error=UNREADABLE)
    else:
        attempt = await webhooks.send(webhook.url, delivery, secrets)
    await _settle(ctx, job, delivery, attempt)


async def _settle(ctx: JobContext, job: Job, delivery: Delivery, attempt: Attempt) -> None:
    settings = ctx.service.get(Webhooks).settings
    verdict = judge(attempt, retry_later_statuses=settings.retry_timeouts_and_throttling)
    now_ms = ctx.service.clock.now_ms()
    planned = _plan(delivery, attempt, now_ms) if verdict is Verdict.RETRY else None
    metrics = ctx.service.get(AttemptMetrics)
    if planned is not None:
        async with ctx.rescheduling(job, after_s=planned.after_s, counts=False) as tx:
            await journal.record(
                tx,
                delivery,
                attempt,
                status="pending",
                step=planned.step,
                next_attempt_at_ms=now_ms + round(planned.after_s * 1000),
                finished_at_ms=None,
            )
        metrics.count(Verdict.RETRY)
        return
    async with ctx.completing(job) as tx:
        await journal.record(
            tx,
            delivery,
            attempt,
            status=_FINAL[verdict],
            step=delivery.step,
            next_attempt_at_ms=None,
            finished_at_ms=now_ms,
        )
        if verdict is Verdict.GONE:
            await store.update(
                tx, delivery.project_id, delivery.webhook_id, {"status": "disabled"}, now_ms
            )
    # What would be repeated has come to the end of its plan.
    metrics.count(Verdict.FAILED if verdict is Verdict.RETRY else verdict)
    if verdict is not Verdict.DELIVERED:
        _log_end(delivery, attempt, verdict)


def _plan(delivery: Delivery, attempt: Attempt, now_ms: int) -> NextAttempt | None:
    first_ms = delivery.first_attempt_at_ms or attempt.started_at_ms
    return next_attempt(delivery.step, (now_ms - first_ms) / 1000, attempt.retry_after_s)


def _log_end(delivery: Delivery, attempt: Attempt, verdict: Verdict) -> None:
    # No URL: many carry a token.
    log.warning(
        "webhook_disabled_by_receiver" if verdict is Verdict.GONE else "webhook_delivery_failed",
        project_id=delivery.project_id,
        webhook_id=delivery.webhook_id,
        delivery_id=delivery.delivery_id,
        status_code=attempt.status_code,
        error=attempt.error,
    )


async def purge(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Forgets old deliveries, and secrets that have ended."""
    now_ms = ctx.service.clock.now_ms()
    kept_ms = ctx.service.get(Webhooks).settings.journal_days * DAY_MS
    async with ctx.completing(*jobs) as tx:
        await journal.purge(tx, now_ms - kept_ms)
        await store.purge_secrets(tx, now_ms)


async def settle_dead(service: "Service", tx: Tx, job: Job, _error: str) -> None:
    """Ends a delivery whose job failed for good by a fault of ours; its event is in the feed."""
    delivery = await journal.find(tx, job.project_id or "", job.payload["delivery_id"])
    if delivery is not None and delivery.status == "pending":
        await journal.fail(tx, delivery, service.clock.now_ms())


DELIVER_JOB = JobSpec(DELIVER, deliver, max_attempts=FAULTS_ALLOWED, on_dead=settle_dead)
PURGE_JOB = JobSpec("webhooks.purge", purge, every_s=3600)
