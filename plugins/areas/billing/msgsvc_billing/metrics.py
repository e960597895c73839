"""Metric of blocked accounts."""

from prometheus_client import Gauge

from msgsvc_billing import store
from msgsvc_billing.settings import BillingSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.telemetry import Metrics


class BillingMetrics:
    """Queried together with the core's gauges."""

    def __init__(self, *, clock: Clock, metrics: Metrics, settings: BillingSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._blocked = Gauge(
            "msgsvc_billing_blocked_accounts",
            "Accounts whose credits are used up and whose days of grace are over.",
            registry=metrics.registry,
        )
        metrics.database.queries.append(self._ask)

    async def _ask(self, tx: Tx) -> None:
        before_ms = self._clock.now_ms() - self._settings.grace_ms
        self._blocked.set(await store.count_exhausted(tx, before_ms))
