"""Metrics of channels: waiting times, refusals by platforms, and what people write."""

from collections.abc import Collection
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

#: The channel label of project channels, whose names are chosen by projects.
OWN_CHANNEL = "own"

#: Bucket bounds in seconds; a chat waits for at most a second before its message is rescheduled.
WAITS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

#: Bucket bounds in seconds, from an idle bot to a backlog or an outage of hours.
DELIVERIES_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)


UpdateOutcome = Literal["handled", "failed"]


class ChannelMetrics:
    """`service.metrics.channels`."""

    def __init__(self, configured: Collection[str], registry: CollectorRegistry) -> None:
        self._configured = frozenset(configured)
        self._waits = Histogram(
            "msgsvc_channel_pace_wait_seconds",
            "How long calls to a platform waited for their turn in its pace.",
            ("channel",),
            buckets=WAITS_S,
            registry=registry,
        )
        self._refused = Counter(
            "msgsvc_channel_rate_limited",
            "Calls that a platform refused with 429, for the bot or for a chat alone.",
            ("channel", "scope"),
            registry=registry,
        )
        self._deliveries = Histogram(
            "msgsvc_delivery_duration_seconds",
            "From a message's acceptance to the platform's answer, of single messages that were sent.",
            ("channel",),
            buckets=DELIVERIES_S,
            registry=registry,
        )
        self._updates = Counter(
            "msgsvc_channel_updates",
            "What people did in a messenger: texts, buttons, starts. `failed`: a handler raised.",
            ("channel", "outcome"),
            registry=registry,
        )
        self._outages = Counter(
            "msgsvc_channel_outages",
            "Times that a platform was found to answer nobody.",
            ("channel",),
            registry=registry,
        )
        self._withheld = Counter(
            "msgsvc_automatic_answers_withheld",
            "Answers that a bot did not give, as the chat had its budget: a program may be answering.",
            ("channel", "kind"),
            registry=registry,
        )
        self._shelved = Counter(
            "msgsvc_updates_shelved",
            "Items that could not be read or processed and were put on a channel's shelf, by reason.",
            ("channel", "reason"),
            registry=registry,
        )
        self._shelf_dropped = Counter(
            "msgsvc_shelf_dropped",
            "Items that were deleted from a full shelf for newer ones.",
            ("channel",),
            registry=registry,
        )
        # Counters of configured channels start at 0, so that an alert sees the first increase.
        for channel in configured:
            self._outages.labels(channel)
            self._shelf_dropped.labels(channel)
            for outcome in get_args(UpdateOutcome):
                self._updates.labels(channel, outcome)

    def label(self, channel: str) -> str:
        """The label of a channel: its name in the configuration, or that of project channels."""
        return channel if channel in self._configured else OWN_CHANNEL

    def waited(self, channel_key: str, seconds: float) -> None:
        self._waits.labels(self.label(channel_key)).observe(seconds)

    def delivered(self, channel_key: str, seconds: float) -> None:
        """A message that was accepted so long ago was sent."""
        self._deliveries.labels(self.label(channel_key)).observe(seconds)

    def received(self, channel_key: str, outcome: UpdateOutcome) -> None:
        self._updates.labels(self.label(channel_key), outcome).inc()

    def outage_began(self, channel_key: str) -> None:
        self._outages.labels(self.label(channel_key)).inc()

    def withheld(self, channel_key: str, kind: str) -> None:
        self._withheld.labels(self.label(channel_key), kind).inc()

    def expect_shelved(self, reasons: Collection[str]) -> None:
        """Has the counters of configured channels start at 0 for these reasons."""
        for channel in self._configured:
            for reason in reasons:
                self._shelved.labels(channel, reason)

    def shelved(self, channel_key: str, reason: str) -> None:
        self._shelved.labels(self.label(channel_key), reason).inc()

    def dropped_from_shelf(self, channel_key: str, count: int) -> None:
        self._shelf_dropped.labels(self.label(channel_key)).inc(count)

    def refused(self, channel_key: str, scope: str) -> None:
        self._refused.labels(self.label(channel_key), scope).inc()
