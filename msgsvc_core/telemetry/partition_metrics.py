"""Metrics of partitions on PostgreSQL."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class PartitionMetrics:
    """By table, as of the last purge of this process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Gauge(
            "msgsvc_partitions",
            "Partitions of a table, as of the last purge of this process.",
            ("table",),
            registry=registry,
        )
        self._dropped = Counter(
            "msgsvc_partitions_dropped",
            "Partitions that were dropped after their retention.",
            ("table",),
            registry=registry,
        )

    def set_count(self, table: str, count: int) -> None:
        """How many partitions a table has."""
        self._count.labels(table).set(count)

    def count_dropped(self, table: str) -> None:
        """One more partition was dropped."""
        self._dropped.labels(table).inc()
