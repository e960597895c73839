"""Gauges of channels: their backlog, and those that are stopped, paused, or whose platform is away."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.states import ChannelState
from msgsvc_core.channels.lanes import LANE, channel_of
from msgsvc_core.db import Row, Tx
from msgsvc_core.telemetry.database_metrics import STATES, DatabaseMetrics


class ChannelStateMetrics(Collector):
    """Channels as they were when the database was last asked; nothing while it is away."""

    def __init__(
        self,
        *,
        configured: Collection[str],
        label: Callable[[str], str],
        find: Callable[[str], Channel | None],
        troubled: Callable[[Tx], Awaitable[Sequence[ChannelState]]],
        database: DatabaseMetrics,
    ) -> None:
        self._configured = configured
        self._label = label
        self._find = find
        self._troubled = troubled
        self._database = database
        database.queries.append(self._ask)
        database.observers.append(self._observe_jobs)
        #: Jobs by channel label and state, and the seconds for which the oldest due one has waited.
        self._jobs: dict[tuple[str, str], int] = {}
        self._oldest_s: dict[str, float] = {}
        #: Bots that are stopped, and when the last pause ends, by channel label.
        self._stopped: dict[str, int] = {}
        self._paused_until_s: dict[str, float] = {}
        #: Since when a platform is away, 0 while none is.
        self._away_since_s: dict[str, float] = {}
        #: Since when a bot receives nothing, 0 while all receive.
        self._interrupted_since_s: dict[str, float] = {}

    async def _ask(self, tx: Tx) -> None:
        configured = self._configured
        stopped, paused = dict.fromkeys(configured, 0), dict.fromkeys(configured, 0.0)
        away, interrupted = dict.fromkeys(configured, 0.0), dict.fromkeys(configured, 0.0)
        for state in await self._troubled(tx):
            label = self._label(state.channel)
            stopped[label] = stopped.get(label, 0) + state.stopped
            paused[label] = max(paused.get(label, 0.0), state.paused_until_ms / 1000)
            if state.outage_since_ms is not None:
                since_s = state.outage_since_ms / 1000
                away[label] = min(since_s, away.get(label) or since_s)
            channel = self._find(state.channel)
            # One that polls no more may have been interrupted when it last did.
            receives = channel is not None and channel.receiving != "nothing"
            if receives and state.interrupted_since_ms is not None:
                since_s = state.interrupted_since_ms / 1000
                interrupted[label] = min(since_s, interrupted.get(label) or since_s)
        self._stopped, self._paused_until_s = stopped, paused
        self._away_since_s, self._interrupted_since_s = away, interrupted

    def _observe_jobs(self, rows: Sequence[Row], now_ms: int) -> None:
        jobs = {(label, state): 0 for label in self._configured for state in STATES}
        oldest_s = dict.fromkeys(self._configured, 0.0)
        for row in rows:
            if row["lane"].partition(":")[0] != LANE:
                continue
            label, state = self._label(channel_of(row["lane"])), row["state"]
            jobs[label, state] = jobs.get((label, state), 0) + row["count"]
            if state == "ready":
                waited_s = (now_ms - row["oldest_ms"]) / 1000
                oldest_s[label] = max(oldest_s.get(label, 0.0), waited_s)
        self._jobs, self._oldest_s = jobs, oldest_s

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return self.collect()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        stopped = GaugeMetricFamily(
            "msgsvc_channels_stopped", "Bots that are banned or revoked.", labels=("channel",)
        )
        paused = GaugeMetricFamily(
            "msgsvc_channel_paused_until_timestamp_seconds",
            "Until when a platform told a bot to wait; 0 without a wait.",
            labels=("channel",),
        )
        away = GaugeMetricFamily(
            "msgsvc_channel_unavailable_since_timestamp_seconds",
            "Since when a platform has answered nobody; 0 while it answers.",
            labels=("channel",),
        )
        interrupted = GaugeMetricFamily(
            "msgsvc_channel_reception_interrupted_since_timestamp_seconds",
            "Since when a bot receives nothing; 0 while it receives.",
            labels=("channel",),
        )
        jobs = GaugeMetricFamily(
            "msgsvc_channel_jobs",
            "Jobs of a channel (messages, edits, replies of bots): ready, delayed, running, dead.",
            labels=("channel", "state"),
        )
        oldest = GaugeMetricFamily(
            "msgsvc_channel_oldest_due_age_seconds",
            "How long the oldest due job of a channel has been waiting.",
            labels=("channel",),
        )
        if self._database.is_up:
            for (label, state), count in self._jobs.items():
                jobs.add_metric((label, state), count)
            for label, age_s in self._oldest_s.items():
                oldest.add_metric((label,), age_s)
            for label, since_s in self._interrupted_since_s.items():
                interrupted.add_metric((label,), since_s)
            for label, since_s in self._away_since_s.items():
                away.add_metric((label,), since_s)
            for label, count in self._stopped.items():
                stopped.add_metric((label,), count)
            for label, until_s in self._paused_until_s.items():
                paused.add_metric((label,), until_s)
        yield jobs
        yield oldest
        yield stopped
        yield paused
        yield away
        yield interrupted
