"""Writes outcomes of deliveries in batches, across webhooks."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from contextvars import Context

import structlog

from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.db.sql import Dialect
from msgsvc_core.jobs import Job, JobContext, LeaseLost, Reschedule
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object
from msgsvc_webhooks import journal
from msgsvc_webhooks.health import Called, Health
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt, Delivery, DeliveryStatus, Webhook
from msgsvc_webhooks.retries import Verdict, classify, next_attempt
from msgsvc_webhooks.settings import WebhookSettings

#: Maximum number of outcomes per transaction.
MOST_AT_ONCE = 1000

#: Outcomes that wait while a group is written, from which on PostgreSQL writes another beside it.
MANY = 200

#: Seconds between the beginnings of two groups, unless half a group waits: under load it makes them larger,
#: alone an outcome waits for nobody.
PAUSE_S = 0.05

_FINAL: dict[Verdict, DeliveryStatus] = {
    Verdict.DELIVERED: "delivered",
    Verdict.RETRY: "failed",  # at the end of the plan
    Verdict.FAILED: "failed",
    Verdict.GONE: "failed",
}

log = structlog.get_logger(__name__)


class Written:
    """The number of a batch's outcomes that are still to be written."""

    def __init__(self, ctx: JobContext, outcomes: int) -> None:
        self.ctx = ctx
        self._open = outcomes
        self._error: Exception | None = None
        self._all = asyncio.Event()

    def one(self, error: Exception | None = None) -> None:
        """One has been written, or could not be."""
        self._open -= 1
        self._error = self._error or error
        if not self._open:
            self._all.set()

    async def all_written(self) -> None:
        """Raises what kept one of them from being written."""
        await self._all.wait()
        if self._error is not None:
            raise self._error


@value_object
class Outcome:
    """The outcome of a job: its delivery was deleted; or it is cancelled, without an attempt; or there was
    an attempt, after which it has `status`, and is pending until `next_at_ms`."""

    written: Written
    job: Job
    delivery: Delivery | None = None
    webhook: Webhook | None = None
    attempt: Attempt | None = None
    verdict: Verdict | None = None
    status: DeliveryStatus = "cancelled"
    step: int = 0
    next_at_ms: int | None = None


class OutcomeWriter:
    """`add` an outcome; its batch is notified when it is written."""

    def __init__(
        self,
        *,
        clock: Clock,
        dialect: Dialect,
        settings: WebhookSettings,
        health: Health,
        metrics: AttemptMetrics,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._health = health
        self._metrics = metrics
        self._queue: deque[Outcome] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_once = 1 if dialect == "sqlite" else 2

    def outcome_of(
        self, written: Written, job: Job, delivery: Delivery, webhook: Webhook, attempt: Attempt
    ) -> Outcome:
        """What an attempt means for its delivery."""
        again = self._settings.retry_timeouts_and_throttling
        verdict = classify(attempt, retry_later_statuses=again)
        status, step, next_at_ms = _FINAL[verdict], delivery.step, None
        if verdict is Verdict.RETRY:
            now_ms = self._clock.now_ms()
            first_ms = delivery.first_attempt_at_ms or attempt.started_at_ms
            elapsed_s = (now_ms - first_ms) / 1000
            planned = next_attempt(delivery.step, elapsed_s, attempt.retry_after_s)
            if planned is not None:
                status, step = "pending", planned.step
                next_at_ms = now_ms + round(planned.after_s * 1000)
            else:
                verdict = Verdict.FAILED
        return Outcome(written, job, delivery, webhook, attempt, verdict, status, step, next_at_ms)

    def add(self, outcome: Outcome) -> None:
        """Has an outcome written, together with others."""
        self._queue.append(outcome)
        if not self._tasks or (len(self._queue) >= MANY and len(self._tasks) < self._at_once):
            # Not in the caller's context: its names would stand in the logs of all.
            task = asyncio.create_task(self._write_all(), context=Context())
            self._tasks.add(task)

    async def _write_all(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        try:
            while self._queue:
                began_s = loop.time()
                count = min(len(self._queue), MOST_AT_ONCE)
                await self._write([self._queue.popleft() for _ in range(count)])
                if len(self._queue) < MOST_AT_ONCE // 2:
                    await asyncio.sleep(max(0.0, began_s + PAUSE_S - loop.time()))
        finally:
            # Here rather than in a done callback: an outcome added in between would see a running task.
            self._tasks.discard(task)

    async def _write(self, group: Sequence[Outcome]) -> None:
        try:
            await self._commit(group)
        except Exception as error:  # noqa: BLE001 - raised in the batches that wait
            if len(group) > 1 and not isinstance(error, DatabaseUnavailable):
                # One of them is another runner's now, or at fault; the others are not to suffer for it.
                for outcome in group:
                    await self._write([outcome])
                return
            for outcome in group:
                outcome.written.one(error)
        else:
            for outcome in group:
                outcome.written.ctx.forget(outcome.job)
                outcome.written.one()
            self._resolve(group)

    async def _commit(self, group: Sequence[Outcome]) -> None:
        done = [outcome.job for outcome in group if outcome.next_at_ms is None]
        back = [
            Reschedule(outcome.job, outcome.next_at_ms)
            for outcome in group
            if outcome.next_at_ms is not None
        ]
        async with group[0].written.ctx.settling(done, back) as tx:
            await self._record(tx, group)

    async def _record(self, tx: Tx, group: Sequence[Outcome]) -> None:
        now_ms = self._clock.now_ms()
        tried: list[journal.Tried] = []
        cancelled: list[Delivery] = []
        for outcome in group:
            delivery, attempt = outcome.delivery, outcome.attempt
            if delivery is None:
                continue
            if attempt is None:
                cancelled.append(delivery)
                continue
            tried.append(
                journal.Tried(delivery, attempt, outcome.status, outcome.step, outcome.next_at_ms)
            )
        await journal.finish(tx, cancelled, "cancelled", now_ms)
        if not await journal.record_attempts(tx, tried, now_ms):
            raise LeaseLost
        await self._health.record(
            tx,
            [
                Called(outcome.webhook, outcome.delivery, outcome.attempt, outcome.verdict)
                for outcome in group
                if outcome.webhook and outcome.delivery and outcome.attempt and outcome.verdict
            ],
        )

    def _resolve(self, group: Sequence[Outcome]) -> None:
        for verdict, count in Counter(outcome.verdict for outcome in group).items():
            if verdict is not None:
                self._metrics.count(verdict, count)
        for outcome in group:
            if outcome.status == "failed" and outcome.delivery and outcome.attempt:
                # No URL: many carry a token.
                log.warning(
                    "webhook_delivery_failed",
                    project_id=outcome.delivery.project_id,
                    webhook_id=outcome.delivery.webhook_id,
                    delivery_id=outcome.delivery.delivery_id,
                    status_code=outcome.attempt.status_code,
                    error=outcome.attempt.error,
                )
