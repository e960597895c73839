"""Metrics of delivery attempts."""

from typing import get_args

from prometheus_client import CollectorRegistry, Counter

from msgsvc_webhooks.models import DisabledReason
from msgsvc_webhooks.retries import Verdict

#: An attempt that is to be repeated is `retried`; `failed` was the last of its delivery.
OUTCOMES = {
    Verdict.DELIVERED: "delivered",
    Verdict.RETRY: "retried",
    Verdict.FAILED: "failed",
    Verdict.GONE: "gone",
}


class AttemptMetrics:
    """Counts attempts over the webhooks of all projects: a single webhook's numbers would be its project's
    data."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = Counter(
            "msgsvc_webhooks_attempts",
            "Attempts to deliver a webhook: delivered, retried (to be repeated), failed (the last),"
            " gone (the receiver wants no more).",
            ["outcome"],
            registry=registry,
        )
        self._by_verdict = {verdict: counter.labels(name) for verdict, name in OUTCOMES.items()}
        disabled = Counter(
            "msgsvc_webhooks_disabled",
            "Webhooks that the service disabled: failing (for days), gone (the receiver said so).",
            ["reason"],
            registry=registry,
        )
        self._by_reason = {reason: disabled.labels(reason) for reason in get_args(DisabledReason)}

    def count(self, verdict: Verdict, attempts: int = 1) -> None:
        """Counts attempts that ended so."""
        self._by_verdict[verdict].inc(attempts)

    def count_disabled(self, reason: DisabledReason) -> None:
        """Counts one webhook."""
        self._by_reason[reason].inc()
