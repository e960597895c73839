"""The runner: drains lanes on this event loop, renews its leases, and sweeps.

The same in the serving process and in `msgsvc worker`; only the wake-ups differ.
"""

import asyncio
import os
import random
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context
from itertools import groupby

import structlog

from msgsvc_core.config.sections import JobSettings
from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.db.postgres_statistics import analyze_grown
from msgsvc_core.jobs import lanes, store
from msgsvc_core.jobs.batch import RECURRING, Batch, recurring
from msgsvc_core.jobs.claims import Claims, Lease
from msgsvc_core.jobs.contract import Gate, Job, JobSpec, LaneSpec
from msgsvc_core.jobs.lane import Lane
from msgsvc_core.jobs.lease_clock import FutureLeases, LeaseClock
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.jobs.starts import Starts
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.hooks import unique_by_name
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.tracing import Tracing

#: Seconds until a lane is retried after the database failed.
PAUSE_AFTER_FAULT_S = 1.0

#: Seconds between an owner's polls of its exclusive lanes to which other processes add: those may wake a
#: runner that does not own the lane, and cannot address the owner.
OWN_LOOK_S = 0.1

#: Seconds between checks whether PostgreSQL's tables have grown, of all runners together.
GROWTH_LOOK_S = 2.0

#: Milliseconds by which a clock may be wrong; a recurring job that is later than that runs now. Less would
#: make jobs run twice when a clock is set back by an hour.
WRONG_BY_MS = 2 * 3600 * 1000

#: Jitter of a runner's turn, as a fraction, so that runners started together spread.
SPREAD = 0.2

log = structlog.get_logger(__name__)


class LaneRunner:
    """`start` it once; `wake` a lane whenever it may have work.

    `pass_on` is called with a lane that has more work than this runner can run. `key_ids` are those of the
    secret keys that this process knows.
    """

    def __init__(
        self,
        specs: Iterable[JobSpec],
        lane_specs: Iterable[LaneSpec],
        *,
        db: Database,
        clock: Clock,
        queue: JobQueue,
        settings: JobSettings,
        table_owners: Sequence[str],
        key_ids: Sequence[str] = (),
        pass_on: Callable[[str], None] | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._queue = queue
        self._settings = settings
        self._table_owners = table_owners
        self._key_ids = key_ids
        self._specs = unique_by_name("job", specs)
        self._lane_specs = unique_by_name("lane", lane_specs, "prefix")
        self._pass_on = pass_on
        self._tracing = tracing
        lease_ms = round(self._settings.lease_s * 1000)
        self._lease = Lease(new_id("run"), lease_ms, LeaseClock(clock, lease_ms))
        self._future_leases = FutureLeases(clock, lease_ms)
        self._names = tuple(self._specs)
        self._claims = Claims(db, clock, self._lease, self._names)
        #: Jobs that are running now. Only their leases are renewed: a job whose outcome could not be written,
        #: because the database was unavailable, must expire and be claimed again.
        self._working: set[str] = set()
        self._starts = Starts()
        self._lanes: dict[str, Lane] = {}
        self._draining: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._upkeep: list[asyncio.Task[None]] = []
        self._stopping = False
        #: Runners that share the work; each sweeps less often accordingly.
        self._runners = 1

    @property
    def stopping(self) -> bool:
        """Whether it claims no more jobs."""
        return self._stopping

    async def start(self) -> None:
        """Starts running jobs; creates missing recurring jobs."""
        await self._set_up_recurring()
        await self._leave_unhandled()
        self._queue.woken_by(self.wake)
        await self._renew()
        upkeep = [
            _forever(lambda: self._settings.lease_s / 3, self._renew),
            _forever(lambda: self._shared(self._settings.sweep_s), self._sweep),
        ]
        # On SQLite only this process adds jobs, apart from short commands.
        if self._db.dialect == "postgresql":
            upkeep.append(_forever(lambda: OWN_LOOK_S, self._drain_own))
            upkeep.append(_forever(lambda: self._shared(GROWTH_LOOK_S), self._analyze_growth))
        self._upkeep = [asyncio.create_task(work) for work in upkeep]

    async def stop(self) -> None:
        """Stops claiming, waits up to `grace_s` for running jobs, and releases the rest."""
        self._stopping = True
        self._queue.woken_by(None)
        for timer in self._timers.values():
            timer.cancel()
        for lane in self._lanes.values():
            lane.stop()
        if self._draining:
            await asyncio.wait(self._draining.values(), timeout=self._settings.grace_s)
        await cancel_and_wait(*self._draining.values(), *self._upkeep)
        try:
            async with self._db.transaction(background=True) as tx:
                await store.release(tx, runner_id=self._lease.runner_id)
                await lanes.release(tx, runner_id=self._lease.runner_id)
        except DatabaseUnavailable as error:
            log.warning("runner_released_nothing", error=str(error))

    def wake(self, lane_name: str, run_at_ms: int = 0) -> None:
        """Drains a lane, now or from `run_at_ms` on."""
        if self._stopping:
            return
        delay_s = (run_at_ms - self._clock.now_ms()) / 1000
        if delay_s > 0:
            self._wake_later(lane_name, delay_s)
        elif lane_name in self._draining:
            self._lanes[lane_name].wake()
        else:
            # The lane is created here, not in its task: the next wake-up may come before that starts.
            lane = self._lanes.get(lane_name) or self._new_lane(lane_name)
            self._draining[lane_name] = asyncio.create_task(
                self._drain(lane),
                name=f"lane {lane_name}",
                # Not in the caller's context: its request id would appear in the logs of unrelated jobs.
                context=Context(),
            )

    def _wake_later(self, lane_name: str, delay_s: float) -> None:
        """Sets the lane's timer, unless an earlier one is set. The sweeper is the fallback."""
        loop = asyncio.get_running_loop()
        at = loop.time() + min(delay_s, 3600.0)
        timer = self._timers.get(lane_name)
        if timer and timer.when() <= at:
            return
        if timer:
            timer.cancel()
        self._timers[lane_name] = loop.call_at(at, self._timer_ended, lane_name)

    def _timer_ended(self, lane_name: str) -> None:
        del self._timers[lane_name]
        self.wake(lane_name)

    async def _drain(self, lane: Lane) -> None:
        lane_name = lane.name
        try:
            next_look_ms = await lane.drain()
        except Exception as error:  # noqa: BLE001 - the edge: a lane must outlive its database
            log.warning("lane_interrupted", lane=lane_name, error=str(error))
            next_look_ms = self._clock.now_ms() + round(PAUSE_AFTER_FAULT_S * 1000)
        finally:
            del self._draining[lane_name]
        if next_look_ms is None:
            self._lanes.pop(lane_name, None)
        else:
            self.wake(lane_name, next_look_ms)

    def _new_lane(self, name: str) -> Lane:
        prefix = name.partition(":")[0]
        spec = self._lane_specs.get(prefix) or LaneSpec(prefix)
        lane = Lane(
            name,
            spec,
            self._names,
            db=self._db,
            clock=self._clock,
            lease=self._lease,
            claims=self._claims,
            run=self._run,
            pass_on=self._pass_on,
            gate=spec.gate(name) if spec.gate else None,
        )
        self._lanes[name] = lane
        return lane

    async def _run(self, jobs: Sequence[Job], gate: Gate | None) -> None:
        """Passes a batch to its handlers, the jobs of one name together, in the order of the queue."""
        # A process that was suspended for the duration of a lease finds its own jobs unclaimed. Those that
        # are running here continue, under the new lease.
        jobs = [job for job in jobs if job.job_id not in self._working]
        claimed = {job.job_id for job in jobs}
        self._working |= claimed
        self._queue.in_flight += len(jobs)

        def settled(job_id: str) -> None:
            # It may be claimed again immediately, and start in another batch before this one ends.
            claimed.discard(job_id)
            self._working.discard(job_id)

        parts = [list(same) for _, same in groupby(jobs, key=lambda job: job.name)]
        try:
            async with self._starts.places(parts) as places:
                for part, place in zip(parts, places, strict=True):
                    batch = Batch(
                        self._specs[part[0].name],
                        part,
                        db=self._db,
                        clock=self._clock,
                        queue=self._queue,
                        runner_id=self._lease.runner_id,
                        stopping=lambda: self._stopping,
                        settled=settled,
                        gate=gate,
                        tracing=self._tracing,
                    )
                    await self._starts.reach(place)
                    await batch.run()
        finally:
            self._working -= claimed
            self._queue.in_flight -= len(jobs)

    async def _renew(self) -> None:
        lease = self._lease
        async with self._db.transaction(background=True) as tx:
            # Not before the transaction began: what was claimed meanwhile is leased for longer.
            now_ms = self._clock.now_ms()
            await store.renew(
                tx,
                list(self._working),
                runner_id=lease.runner_id,
                until_ms=now_ms + lease.duration_ms,
            )
            await lanes.renew(
                tx,
                runner_id=lease.runner_id,
                name=_name_of_process(),
                key_ids=self._key_ids,
                now_ms=now_ms,
                over_ms=lease.clock.over_ms(),
                lease_ms=lease.duration_ms,
            )
            future = await lanes.leases_after(tx, self._future_leases.from_ms())
            for held in self._future_leases.dead(future):
                log.warning("future_lease_ended", runner_id=held[0])
                await lanes.end_lease(tx, held)

    async def _set_up_recurring(self) -> None:
        """Creates missing recurring jobs: new ones, and those that became dead letters or were discarded.
        Those that a wrong clock has scheduled too far in the future run now; replaced ones are removed."""
        specs = {name: spec for name, spec in self._specs.items() if spec.every_s is not None}
        async with self._db.read() as tx:
            there = await store.open_with_key(tx, list(specs), RECURRING)
            replaced = await store.open_with_key(
                tx, [name for spec in specs.values() for name in spec.replaces], RECURRING
            )
        now_ms = self._clock.now_ms()
        missing = [recurring(spec, now_ms) for name, spec in specs.items() if name not in there]
        farthest_ms = {name: now_ms + _farthest_ms(spec) for name, spec in specs.items()}
        far = [name for name, run_at_ms in there.items() if run_at_ms >= farthest_ms[name]]
        if not missing and not far and not replaced:
            return
        async with self._db.transaction(background=True) as tx:
            await self._queue.enqueue(tx, *missing)
            await store.remove_with_key(tx, list(replaced), RECURRING)
            for name in far:
                log.warning("recurring_job_was_far_off", job=name)
                await store.bring_forward(tx, name, RECURRING, farthest_ms[name], now_ms)

    async def _leave_unhandled(self) -> None:
        """Removes recurring jobs of plugins and databases that this service does not have any more: they
        would seem to wait for ever, and come back with their handler. Other jobs stay."""
        async with self._db.read() as tx:
            without_handler = await store.names_without_handler(tx, self._names)
        if not without_handler:
            return
        async with self._db.transaction(background=True) as tx:
            removed = await store.remove_unhandled_with_key(
                tx, self._names, RECURRING, self._clock.now_ms()
            )
        if removed:
            log.info("recurring_jobs_removed", jobs=removed)
        if left := [name for name in without_handler if name not in removed]:
            log.warning("jobs_without_handler", jobs=left)

    def _shared(self, interval_s: float) -> float:
        """Seconds until this runner's turn, if all together do something about once per `interval_s`."""
        spread = 1 + random.uniform(-SPREAD, SPREAD)  # noqa: S311 - no secret
        return interval_s * self._runners * spread

    async def _sweep(self) -> None:
        """Wakes lanes with due jobs that no other runner owns, and those that are due before the next
        sweep."""
        await self._set_up_recurring()
        now_ms = self._clock.now_ms()
        async with self._db.read() as tx:
            found = await lanes.with_work(tx)
            others = await lanes.owned_by_others(
                tx, runner_id=self._lease.runner_id, over_ms=self._lease.clock.over_ms()
            )
            self._runners = max(1, await lanes.count_runners(tx, now_ms))
        soon_ms = now_ms + round(self._settings.sweep_s * (1 + SPREAD) * 1000)
        for lane_name, due_ms in found.items():
            if due_ms <= soon_ms and lane_name not in others:
                self.wake(lane_name, due_ms)

    async def _analyze_growth(self) -> None:
        async with self._db.read() as tx:
            for name in await analyze_grown(tx, self._table_owners):
                log.debug("table_analyzed", table=name)

    async def _drain_own(self) -> None:
        now_ms = self._clock.now_ms()
        async with self._db.read() as tx:
            found = await lanes.owned_with_work(tx, self._lease.runner_id)
        for lane_name, due_ms in found.items():
            if due_ms <= now_ms and lane_name not in self._draining:
                self.wake(lane_name)


def _name_of_process() -> str:
    """Machine and process, for operators."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _farthest_ms(spec: JobSpec) -> int:
    """The maximum milliseconds until the next run of a recurring job, if clocks are right."""
    assert spec.every_s is not None, "it recurs"
    longest_s = max(spec.every_s, spec.backoff(spec.max_attempts))
    return round(longest_s * (1 + spec.jitter) * 1000) + WRONG_BY_MS


async def _forever(interval_s: Callable[[], float], work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the edge: the database may be away for a while
            log.warning("runner_upkeep_failed", error=str(error))
        await asyncio.sleep(interval_s())
