"""The embedded runner: drains lanes on this event loop and keeps their leases alive."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context
from itertools import groupby
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.ids import new_id
from msgsvc_core.jobs import store
from msgsvc_core.jobs.batch import Batch, recurring
from msgsvc_core.jobs.contract import Job, JobSpec, LaneSpec
from msgsvc_core.jobs.lane import Lane, Lease
from msgsvc_core.plugins import by_name

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Seconds until a lane whose database failed is looked at again.
PAUSE_AFTER_FAULT_S = 1.0

log = structlog.get_logger(__name__)


class LaneRunner:
    """`start` it once; `wake` a lane whenever it may have work."""

    def __init__(
        self, service: "Service", specs: Iterable[JobSpec], lanes: Iterable[LaneSpec]
    ) -> None:
        self._service = service
        self._settings = service.settings.jobs
        self._specs = by_name("job", specs)
        self._lane_specs = by_name("lane", lanes, "prefix")
        self._lease = Lease(new_id("run"), round(self._settings.lease_s * 1000))
        self._names = tuple(self._specs)
        #: Jobs in a handler now. Only their leases are renewed: a job whose outcome could not be
        #: written, because the database was away, must run out and come again.
        self._working: set[str] = set()
        self._lanes: dict[str, Lane] = {}
        self._draining: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._upkeep: list[asyncio.Task[None]] = []
        self._stopping = False

    async def start(self) -> None:
        """Begins to work; recurring jobs are set up where they are new."""
        now_ms = self._service.clock.now_ms()
        recurring_jobs = [
            recurring(spec, now_ms) for spec in self._specs.values() if spec.every_s is not None
        ]
        async with self._service.db.transaction() as tx:
            await self._service.jobs.enqueue(tx, *recurring_jobs)
            if without_handler := await store.names_without_handler(tx, self._names):
                log.warning("jobs_without_handler", jobs=without_handler)
        self._service.jobs.woken_by(self.wake)
        self._upkeep = [
            asyncio.create_task(_forever(self._settings.lease_s / 3, self._renew)),
            asyncio.create_task(_forever(self._settings.sweep_s, self._sweep)),
        ]

    async def stop(self) -> None:
        """Takes no more jobs, lets running ones end for `grace_s`, and gives the rest back."""
        self._stopping = True
        self._service.jobs.woken_by(None)
        for timer in self._timers.values():
            timer.cancel()
        for lane in self._lanes.values():
            lane.stop()
        if self._draining:
            await asyncio.wait(self._draining.values(), timeout=self._settings.grace_s)
        await _cancel([*self._draining.values(), *self._upkeep])
        async with self._service.db.transaction() as tx:
            await store.release(tx, runner_id=self._lease.runner_id)

    def wake(self, lane_name: str, run_at_ms: int = 0) -> None:
        """Has a lane drained, now or from `run_at_ms` on."""
        if self._stopping:
            return
        delay_s = (run_at_ms - self._service.clock.now_ms()) / 1000
        if delay_s > 0:
            self._wake_later(lane_name, delay_s)
        elif lane_name in self._draining:
            self._lanes[lane_name].wake()
        else:
            # The lane is made here, not in its task: the next wake may come before that starts.
            lane = self._lanes.get(lane_name) or self._new_lane(lane_name)
            self._draining[lane_name] = asyncio.create_task(
                self._drain(lane),
                name=f"lane {lane_name}",
                # Not the waker's: its request id would stand in the logs of everybody's jobs.
                context=Context(),
            )

    def _wake_later(self, lane_name: str, delay_s: float) -> None:
        """Sets the lane's timer, unless an earlier one is set. The sweeper is behind it all."""
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
            next_look_ms = self._service.clock.now_ms() + round(PAUSE_AFTER_FAULT_S * 1000)
        finally:
            del self._draining[lane_name]
        if next_look_ms is None:
            self._lanes.pop(lane_name, None)
        else:
            self.wake(lane_name, next_look_ms)

    def _new_lane(self, name: str) -> Lane:
        prefix = name.partition(":")[0]
        lane = Lane(
            name,
            self._lane_specs.get(prefix) or LaneSpec(prefix),
            self._names,
            db=self._service.db,
            clock=self._service.clock,
            lease=self._lease,
            run=self._run,
        )
        self._lanes[name] = lane
        return lane

    async def _run(self, jobs: Sequence[Job]) -> None:
        """Hands a batch to its handlers, the jobs of one name together."""
        ids = {job.job_id for job in jobs}
        self._working |= ids
        try:
            for name, same in groupby(jobs, key=lambda job: job.name):
                batch = Batch(self._service, self._specs[name], list(same), self._lease.runner_id)
                await batch.run()
        finally:
            self._working -= ids

    async def _renew(self) -> None:
        until_ms = self._service.clock.now_ms() + self._lease.duration_ms
        async with self._service.db.transaction() as tx:
            await store.renew(
                tx, list(self._working), runner_id=self._lease.runner_id, until_ms=until_ms
            )

    async def _sweep(self) -> None:
        async with self._service.db.read() as tx:
            lanes = await store.lanes_with_work(tx, self._names)
        for lane_name, due_ms in lanes.items():
            self.wake(lane_name, due_ms)


async def _forever(interval_s: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the edge: the database may be away for a while
            log.warning("runner_upkeep_failed", error=str(error))
        await asyncio.sleep(interval_s)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
