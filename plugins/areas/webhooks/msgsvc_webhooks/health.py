"""Since when a webhook fails, and the end of one that has failed for days or wants no more."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.clock import optional_rfc3339
from msgsvc_core.db import Tx
from msgsvc_webhooks import store
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt, DisabledReason, Webhook
from msgsvc_webhooks.retries import Verdict

if TYPE_CHECKING:
    from msgsvc_core.service import Service
    from msgsvc_webhooks.settings import WebhookSettings

DAY_MS = 24 * 3600 * 1000

#: A webhook that was called, the attempt, and what was made of it.
Called = tuple[Webhook, Attempt, Verdict]

log = structlog.get_logger(__name__)


class Health:
    """Keeps `failing_since_ms` of webhooks, and disables those that are beyond help."""

    def __init__(self, service: "Service", settings: "WebhookSettings") -> None:
        self._service = service
        self._settings = settings

    async def note(self, tx: Tx, called: Sequence[Called]) -> None:
        """Writes what attempts say of their webhooks; nothing for one that works, and did before."""
        by_webhook: dict[tuple[str, str], list[Called]] = {}
        for one in called:
            webhook, attempt, _ = one
            # What we could not sign tells nothing of the receiver.
            if not attempt.is_ours:
                by_webhook.setdefault((webhook.project_id, webhook.webhook_id), []).append(one)
        # In order, for two transactions that change the same webhooks would wait for each other.
        for key in sorted(by_webhook):
            await self._note_one(tx, by_webhook[key])

    async def _note_one(self, tx: Tx, called: Sequence[Called]) -> None:
        webhook, attempt, _ = called[-1]
        verdicts = {verdict for *_, verdict in called}
        if Verdict.GONE in verdicts:
            await self._disable(
                tx, *next(one[:2] for one in called if one[2] is Verdict.GONE), "gone"
            )
        elif Verdict.DELIVERED in verdicts:
            if any(one.failing_since_ms is not None for one, *_ in called):
                await store.note_success(tx, webhook)
        elif webhook.failing_since_ms is None:
            await store.note_failure(tx, webhook, attempt.started_at_ms)
        # A hiccup is no reason, after rare failures: a delivery must have come to its end.
        elif Verdict.FAILED in verdicts and webhook.failing_since_ms <= self._limit_ms():
            await self._disable(tx, webhook, attempt, "failing")

    def _limit_ms(self) -> int:
        """What has failed since then, or longer, is disabled."""
        return self._service.clock.now_ms() - round(self._settings.disable_after_days * DAY_MS)

    async def _disable(
        self, tx: Tx, webhook: Webhook, attempt: Attempt, reason: DisabledReason
    ) -> None:
        """Disables a webhook, unless that was done or it has recovered meanwhile, and tells of it."""
        now_ms = self._service.clock.now_ms()
        limit_ms = self._limit_ms() if reason == "failing" else None
        if not await store.disable(tx, webhook, reason, now_ms, failing_since_ms=limit_ms):
            return
        await self._service.events.emit(
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
        tx.on_commit(partial(self._tell, webhook, attempt, reason))

    def _tell(self, webhook: Webhook, attempt: Attempt, reason: DisabledReason) -> None:
        self._service.get(AttemptMetrics).count_disabled(reason)
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
