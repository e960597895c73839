"""Gauges of the database, and whether Redis answers, asked at most every few seconds, never for long."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from msgsvc_core.db import DatabaseUnavailable, Tx
from msgsvc_core.telemetry import store

if TYPE_CHECKING:
    from msgsvc_core.channels.states import ChannelState
    from msgsvc_core.service import Service

#: Seconds for which an answer is used again: counting many jobs takes a while, and
#: several Prometheus servers may scrape.
FRESH_S = 5.0

#: Seconds that the database gets; Prometheus itself gives a scrape 10 by default.
TIMEOUT_S = 2.0

STATES = ("ready", "delayed", "running", "dead")

#: Asks on a reading connection, for a moment, and keeps the answer until the next time.
Question = Callable[[Tx], Awaitable[None]]

log = structlog.get_logger(__name__)


class DatabaseMetrics(Collector):
    """Jobs as they were at the last `refresh`, and the use of the connections as it is."""

    def __init__(
        self,
        service: "Service",
        monotonic: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._service = service
        self._monotonic = monotonic
        self._timeout_s = timeout_s
        #: What plugins ask along with it, for gauges of their own in `service.metrics.registry`.
        self.questions: list[Question] = []
        self._asking = asyncio.Lock()
        self._asked_at = -FRESH_S
        self._up = False
        self._redis_up = True
        #: Jobs by lane prefix and state.
        self._jobs: dict[tuple[str, str], int] = {}
        #: Seconds since the oldest due job was to run, by lane prefix.
        self._oldest_s: dict[str, float] = {}
        #: Bots that are stopped, and when the last pause ends, by channel label.
        self._stopped: dict[str, int] = {}
        self._paused_until_s: dict[str, float] = {}
        #: Since when a platform is away, 0 while none is.
        self._away_since_s: dict[str, float] = {}
        #: Since when a bot receives nothing, 0 while all receive.
        self._interrupted_since_s: dict[str, float] = {}

    async def refresh(self) -> None:
        """Asks anew if the last answer is old. A database that is away leaves no gauges of jobs:
        a number from before would look like one of now."""
        async with self._asking:
            now = self._monotonic()
            if now - self._asked_at < FRESH_S:
                return
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._ask()
                self._up = True
            except (DatabaseUnavailable, TimeoutError) as error:
                log.warning("metrics_without_database", error=str(error) or "no answer in time")
                self._up = False
            self._redis_up = await self._service.limiter.check() is None
            self._asked_at = self._monotonic()

    async def _ask(self) -> None:
        now_ms = self._service.clock.now_ms()
        async with self._service.db.read() as tx:
            rows = await store.jobs_by_lane(tx, now_ms)
            troubled = await self._service.channel_states.troubled(tx)
            for ask in self.questions:
                await ask(tx)
        self._note_channels(troubled)
        # Lanes without jobs are shown too: an alert on what is absent never fires.
        prefixes = [spec.prefix for spec in self._service.lane_specs]
        jobs = defaultdict(int, {(prefix, state): 0 for prefix in prefixes for state in STATES})
        oldest_s = defaultdict(float, dict.fromkeys(prefixes, 0.0))
        for row in rows:
            # Without what follows the colon: a webhook's id would make a series of each webhook.
            prefix = row["lane"].partition(":")[0]
            jobs[prefix, row["state"]] += row["count"]
            if row["state"] == "ready":
                oldest_s[prefix] = max(oldest_s[prefix], (now_ms - row["oldest_ms"]) / 1000)
        self._jobs, self._oldest_s = dict(jobs), dict(oldest_s)

    def _note_channels(self, troubled: Iterable["ChannelState"]) -> None:
        configured = self._service.settings.channels
        stopped, paused = dict.fromkeys(configured, 0), dict.fromkeys(configured, 0.0)
        away, interrupted = dict.fromkeys(configured, 0.0), dict.fromkeys(configured, 0.0)
        for state in troubled:
            label = self._service.metrics.channels.label(state.channel)
            stopped[label] = stopped.get(label, 0) + state.stopped
            paused[label] = max(paused.get(label, 0.0), state.paused_until_ms / 1000)
            if state.outage_since_ms is not None:
                since_s = state.outage_since_ms / 1000
                away[label] = min(since_s, away.get(label) or since_s)
            channel = self._service.channels.get(state.channel)
            # One that polls no more may have been interrupted when it last did.
            receives = channel is not None and channel.receiving != "nothing"
            if receives and state.interrupted_since_ms is not None:
                since_s = state.interrupted_since_ms / 1000
                interrupted[label] = min(since_s, interrupted.get(label) or since_s)
        self._stopped, self._paused_until_s = stopped, paused
        self._away_since_s, self._interrupted_since_s = away, interrupted

    def describe(self) -> Iterator[Metric]:
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "msgsvc_database_up", "Whether the database answered in time.", int(self._up)
        )
        yield GaugeMetricFamily(
            "msgsvc_redis_up", "Whether Redis answered; 1 where none is named.", int(self._redis_up)
        )
        jobs = GaugeMetricFamily(
            "msgsvc_jobs",
            "Jobs: ready (due, waiting for a runner), delayed, running, dead.",
            labels=("lane", "state"),
        )
        oldest = GaugeMetricFamily(
            "msgsvc_jobs_oldest_due_age_seconds",
            "How long the oldest due job has been waiting for a runner.",
            labels=("lane",),
        )
        if self._up:
            for (lane, state), count in self._jobs.items():
                jobs.add_metric((lane, state), count)
            for lane, age_s in self._oldest_s.items():
                oldest.add_metric((lane,), age_s)
        yield jobs
        yield oldest
        yield from self._of_channels()
        use = self._service.db.use
        yield GaugeMetricFamily(
            "msgsvc_database_connections_in_use", "Connections at work.", use.in_use
        )
        yield GaugeMetricFamily(
            "msgsvc_database_connections_max", "Connections there may be.", use.size
        )
        yield GaugeMetricFamily(
            "msgsvc_database_connections_waiting", "Who waits for a connection.", use.waiting
        )
        yield CounterMetricFamily(
            "msgsvc_database_failed_writes",
            "What could not be written: the database was away, full, or held by another process.",
            self._service.db.failed_writes,
        )

    def _of_channels(self) -> Iterator[GaugeMetricFamily]:
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
        if self._up:
            for label, since_s in self._away_since_s.items():
                away.add_metric((label,), since_s)
            for label, since_s in self._interrupted_since_s.items():
                interrupted.add_metric((label,), since_s)
            for label, count in self._stopped.items():
                stopped.add_metric((label,), count)
            for label, until_s in self._paused_until_s.items():
                paused.add_metric((label,), until_s)
        yield stopped
        yield paused
        yield away
        yield interrupted
