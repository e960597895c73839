"""How the attempts of deliveries end, for `/metrics`."""

from prometheus_client import CollectorRegistry, Counter

from msgsvc_webhooks.retries import Verdict

#: An attempt that is to be repeated is `retried`; `failed` was the last of its delivery.
OUTCOMES = {
    Verdict.DELIVERED: "delivered",
    Verdict.RETRY: "retried",
    Verdict.FAILED: "failed",
    Verdict.GONE: "gone",
}


class AttemptMetrics:
    """Counts attempts, over the endpoints of all projects: one's own would be its project's data."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = Counter(
            "msgsvc_webhooks_attempts",
            "Attempts to deliver a webhook: delivered, retried (to be repeated), failed (the last),"
            " gone (the receiver wants no more).",
            ["outcome"],
            registry=registry,
        )
        self._by_verdict = {verdict: counter.labels(name) for verdict, name in OUTCOMES.items()}

    def count(self, verdict: Verdict) -> None:
        """Counts one attempt."""
        self._by_verdict[verdict].inc()
