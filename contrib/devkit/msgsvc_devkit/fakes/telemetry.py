"""Metrics for tests: the core's own, on a fake database."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.telemetry import Metrics
from msgsvc_core.telemetry.database_metrics import DatabaseMetrics
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.database import FakeDatabase


def fake_metrics() -> Metrics:
    """Metrics with a separate registry, `metrics.registry`, as in a real service."""

    async def no_redis() -> str | None:
        return None

    async def count_nothing(_tx: Tx, _now_ms: int) -> Sequence[Row]:
        return []

    async def no_runners(_tx: Tx, _now_ms: int) -> int:
        return 0

    database = DatabaseMetrics(
        db=FakeDatabase(),
        clock=FakeClock(),
        count_jobs=count_nothing,
        count_runners=no_runners,
        lane_prefixes=lambda: ["default", "channel"],
        check_redis=no_redis,
    )
    return Metrics(channels=["messenger_a", "messenger_b"], database=database, dialect="sqlite")
