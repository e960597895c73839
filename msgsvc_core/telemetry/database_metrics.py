"""Gauges of the database and Redis, refreshed at most every few seconds and within a timeout."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from msgsvc_core.db import Database, DatabaseUnavailable, Row, Tx
from msgsvc_core.kernel.clock import Clock

#: Seconds for which results are cached: counting many jobs takes a while, and several Prometheus servers may
#: scrape.
FRESH_S = 5.0

#: Timeout of the queries in seconds; Prometheus has a default of 10 for a scrape.
TIMEOUT_S = 2.0

STATES = ("ready", "delayed", "running", "dead", "without_handler")

#: Queries a reading connection, briefly, and stores the result until the next time.
Question = Callable[[Tx], Awaitable[None]]

#: Jobs at a time in Unix milliseconds: `lane`, `state`, `count`, and `oldest_ms`, when the first was due.
CountJobs = Callable[[Tx, int], Awaitable[Sequence[Row]]]

#: Processes that run jobs at a time in Unix milliseconds.
CountRunners = Callable[[Tx, int], Awaitable[int]]

#: Gets the rows of `CountJobs`, and the time for which they hold.
JobsObserver = Callable[[Sequence[Row], int], None]

log = structlog.get_logger(__name__)


class DatabaseMetrics(Collector):
    """Jobs as of the last `refresh`, and the current use of the connections."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        count_jobs: CountJobs,
        count_runners: CountRunners,
        lane_prefixes: Callable[[], Sequence[str]],
        check_redis: Callable[[], Awaitable[str | None]],
        monotonic: Callable[[], float] = time.monotonic,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._db = db
        self._clock = clock
        self._count_jobs = count_jobs
        self._count_runners = count_runners
        self._lane_prefixes = lane_prefixes
        self._check_redis = check_redis
        self._monotonic = monotonic
        self._timeout_s = timeout_s
        #: Additional queries, for others' gauges in `service.metrics.registry`.
        self.queries: list[Question] = []
        #: Those who make further gauges of the jobs by lane.
        self.observers: list[JobsObserver] = []
        self._querying = asyncio.Lock()
        self._queried_at = -FRESH_S
        self.is_up = False
        self._redis_up = True
        #: Jobs by lane prefix and state.
        self._jobs: dict[tuple[str, str], int] = {}
        self._runners = 0
        #: Seconds since the oldest due job was due, by lane prefix.
        self._oldest_s: dict[str, float] = {}

    async def refresh(self) -> None:
        """Refreshes values that are old. While the database is unavailable the job gauges are absent:
        stale numbers would look current."""
        async with self._querying:
            now = self._monotonic()
            if now - self._queried_at < FRESH_S:
                return
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._query()
                self.is_up = True
            except (DatabaseUnavailable, TimeoutError) as error:
                log.warning("metrics_without_database", error=str(error) or "no answer in time")
                self.is_up = False
            self._redis_up = await self._check_redis() is None
            self._queried_at = self._monotonic()

    async def _query(self) -> None:
        now_ms = self._clock.now_ms()
        async with self._db.read() as tx:
            rows = await self._count_jobs(tx, now_ms)
            self._runners = await self._count_runners(tx, now_ms)
            for ask in self.queries:
                await ask(tx)
        # Lanes without jobs are shown too: an alert on an absent series never fires.
        prefixes = self._lane_prefixes()
        jobs = defaultdict(int, {(prefix, state): 0 for prefix in prefixes for state in STATES})
        oldest_s = defaultdict(float, dict.fromkeys(prefixes, 0.0))
        for row in rows:
            # Without the part after the colon: webhooks' ids would make a series each.
            prefix = row["lane"].partition(":")[0]
            jobs[prefix, row["state"]] += row["count"]
            if row["state"] == "ready":
                oldest_s[prefix] = max(oldest_s[prefix], (now_ms - row["oldest_ms"]) / 1000)
        self._jobs, self._oldest_s = dict(jobs), dict(oldest_s)
        for observe in self.observers:
            observe(rows, now_ms)

    def describe(self) -> Iterator[Metric]:
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "msgsvc_database_up", "Whether the database answered in time.", int(self.is_up)
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
        runners = GaugeMetricFamily(
            "msgsvc_job_runners", "Processes that run jobs, by their leases.", labels=()
        )
        if self.is_up:
            runners.add_metric((), self._runners)
            for (lane, state), count in self._jobs.items():
                jobs.add_metric((lane, state), count)
            for lane, age_s in self._oldest_s.items():
                oldest.add_metric((lane,), age_s)
        yield jobs
        yield oldest
        yield runners
        use = self._db.usage
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
            self._db.failed_writes,
        )
