"""Counts events: sign-ins, codes, tickets and so on."""

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

#: The name of an event, and the label of its subscriber's channel; empty without a subscriber.
Key = tuple[str, str]


class EventMetrics(Collector):
    """Plain numbers that a scrape converts to metrics, like those of requests: every message emits an
    event."""

    def __init__(self) -> None:
        self._counts: Counter[Key] = Counter()

    def count(self, happened: Iterable[Key]) -> None:
        """Counts committed events."""
        self._counts.update(happened)

    def describe(self) -> Iterator[CounterMetricFamily]:
        return self.collect()

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(
            "msgsvc_events",
            "Events of all projects, by name, e.g. auth.completed, otp.verified, ticket.created.",
            labels=("event", "channel"),
        )
        for key, count in self._counts.items():
            family.add_metric(key, count)
        yield family
