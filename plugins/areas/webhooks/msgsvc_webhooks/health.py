"""Failures of webhooks, and disabling one that has failed for days or responds that it is gone."""

from collections.abc import Sequence
from functools import partial

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import DAY_MS, Clock, optional_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_webhooks import store
from msgsvc_webhooks.events import TEST
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt, Delivery, DisabledReason, Webhook
from msgsvc_webhooks.retries import Verdict
from msgsvc_webhooks.settings import WebhookSettings

#: Deliveries that must have failed, with none in between that succeeded, before a webhook is disabled
#: (decision 0006).
FAILED_DELIVERIES = 3

#: Minimum distance between two counted failures as a share of `disable_after_days`: one day of five. One
#: action causes several events, and a receiver being replaced refuses all of them.
APART = 0.2

log = structlog.get_logger(__name__)


@value_object
class Called:
    """A webhook after a call, with the delivery, the attempt, and its verdict."""

    webhook: Webhook
    delivery: Delivery
    attempt: Attempt
    verdict: Verdict

    @property
    def tells_of_the_receiver(self) -> bool:
        """Failures to sign do not count, nor do test deliveries: a receiver under construction is expected
        to fail."""
        if self.delivery.event == TEST:
            return self.verdict in {Verdict.DELIVERED, Verdict.GONE}
        return not self.attempt.is_ours


class Health:
    """Records since when and how often webhooks fail, and disables those that fail for too long."""

    def __init__(
        self, *, clock: Clock, events: Events, settings: WebhookSettings, metrics: AttemptMetrics
    ) -> None:
        self._clock = clock
        self._events = events
        self._metrics = metrics
        self._disables = settings.disable_failing
        self._disable_after_ms = round(settings.disable_after_days * DAY_MS)

    async def record(self, tx: Tx, called: Sequence[Called]) -> None:
        """Writes what attempts say of their webhooks; nothing for one that works, and did before."""
        by_webhook: dict[tuple[str, str], list[Called]] = {}
        for one in called:
            if one.tells_of_the_receiver:
                key = (one.webhook.project_id, one.webhook.webhook_id)
                by_webhook.setdefault(key, []).append(one)
        # In order, for two transactions that change the same webhooks would wait for each other.
        for key in sorted(by_webhook):
            await self._record_one(tx, by_webhook[key])

    async def _record_one(self, tx: Tx, called: Sequence[Called]) -> None:
        by_verdict = {one.verdict: one for one in called}
        last = called[-1]
        if self._disables and (gone := by_verdict.get(Verdict.GONE)):
            now_ms = self._clock.now_ms()
            if await store.disable(tx, gone.webhook, "gone", now_ms):
                await self._notify_all(tx, gone, "gone")
        elif Verdict.DELIVERED in by_verdict:
            if any(one.webhook.failing_since_ms is not None for one in called):
                await store.record_success(tx, last.webhook)
        else:
            if last.webhook.failing_since_ms is None:
                await store.record_failure(tx, last.webhook, last.attempt.started_at_ms)
            # A hiccup is no reason, after rare failures: deliveries must have come to their end.
            if failed := by_verdict.get(Verdict.FAILED) or by_verdict.get(Verdict.GONE):
                await self._record_failed(tx, failed)

    async def _record_failed(self, tx: Tx, failed: Called) -> None:
        """Counts a delivery that has failed, and disables its webhook if it is one too many."""
        webhook, now_ms = failed.webhook, self._clock.now_ms()
        apart_ms = now_ms - round(self._disable_after_ms * APART)
        since_ms = now_ms - self._disable_after_ms
        failing_since_ms, counted_ms = webhook.failing_since_ms, webhook.failed_delivery_at_ms
        # Not asked of the database each time: a dead receiver of much has thousands that fail.
        if failing_since_ms is None or counted_ms is None or counted_ms <= apart_ms:
            await store.count_failed(tx, webhook, now_ms, unless_after_ms=apart_ms)
        if not self._disables or failing_since_ms is None or failing_since_ms > since_ms:
            return
        # Unless it has recovered meanwhile.
        if await store.disable_failing(
            tx,
            webhook,
            now_ms,
            failing_since_ms=since_ms,
            failed_deliveries=FAILED_DELIVERIES,
        ):
            await self._notify_all(tx, failed, "failing")

    async def _notify_all(self, tx: Tx, called: Called, reason: DisabledReason) -> None:
        webhook, attempt = called.webhook, called.attempt
        await self._events.emit(
            tx,
            webhook.project_id,
            "webhook.disabled",
            {
                "webhook_id": webhook.webhook_id,
                "description": webhook.description,
                "reason": reason,
                "failing_since": optional_rfc3339(webhook.failing_since_ms),
                "status_code": attempt.status_code,
                "error": attempt.error,
            },
        )
        tx.on_commit(partial(self._notify, webhook, attempt, reason))

    def _notify(self, webhook: Webhook, attempt: Attempt, reason: DisabledReason) -> None:
        self._metrics.count_disabled(reason)
        # No URL: many carry a token.
        log.error(
            "webhook_disabled",
            project_id=webhook.project_id,
            webhook_id=webhook.webhook_id,
            reason=reason,
            failing_since=optional_rfc3339(webhook.failing_since_ms),
            status_code=attempt.status_code,
            error=attempt.error,
        )
