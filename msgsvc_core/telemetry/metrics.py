"""The metrics of one service: a registry of its own, so that two services can live in a process."""

from collections.abc import Collection, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder

from msgsvc_core.db.schema import this_release
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics
from msgsvc_core.telemetry.database_metrics import DatabaseMetrics
from msgsvc_core.telemetry.event_metrics import EventMetrics
from msgsvc_core.telemetry.partition_metrics import PartitionMetrics
from msgsvc_core.telemetry.request_metrics import RequestMetrics


class Metrics:
    """`service.metrics`. `channels` are the names in the configuration.

    A plugin adds its own metrics to `registry`, where `create_plugin` builds its objects:

        attempts = Counter("msgsvc_x_attempts", "What it counts.", ["outcome"],
                           registry=context.metrics.registry)

    Names start with `msgsvc_<plugin>_`, units are base units. Label values form a small fixed set: never an
    id, a name or a text of a project.
    """

    def __init__(
        self,
        *,
        channels: Collection[str],
        database: DatabaseMetrics,
        dialect: str,
        is_quarantined: bool = False,
    ) -> None:
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics()
        self.events = EventMetrics()
        self.channels = ChannelMetrics(channels, self.registry)
        self.partitions = PartitionMetrics(self.registry)
        self.database = database
        self._deliveries = Counter(
            "msgsvc_deliveries",
            "Messages with a final outcome; reason is why one failed.",
            ("channel", "outcome", "reason"),
            registry=self.registry,
        )
        self.registry.register(self.requests)
        self.registry.register(self.events)
        self.registry.register(self.database)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        quarantine = Gauge(
            "msgsvc_quarantine",
            "1 in a process that sends and receives nothing.",
            registry=self.registry,
        )
        quarantine.set(is_quarantined)
        build = Info("msgsvc_build", "What is running.", registry=self.registry)
        build.info({"version": this_release(), "database": dialect})

    def count_deliveries(self, count: int, channel: str, outcome: str, reason: str = "") -> None:
        """Counts messages that got their final `outcome`: a `MessageStatus`; `reason` if they were not
        sent."""
        self._deliveries.labels(self.channels.label(channel), outcome, reason).inc(count)

    def count_events(self, happened: Sequence[tuple[str, str]]) -> None:
        """Counts committed events: the name of each and the channel of its subscriber, or ""."""
        label = self.channels.label
        self.events.count([(name, label(bot) if bot else "") for name, bot in happened])

    async def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics, in the format of the header `Accept`; and its content type."""
        await self.database.refresh()
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type
