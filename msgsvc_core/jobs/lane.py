"""One lane on one runner: claims due jobs, and runs them within the lane's concurrency."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

import structlog

from msgsvc_core.db import Database, Tx
from msgsvc_core.db.errors import FileLocked
from msgsvc_core.jobs import lanes, store
from msgsvc_core.jobs.claims import Claims, Lease
from msgsvc_core.jobs.contract import Capacity, Gate, Job, LaneSpec
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.clock import Clock

#: Milliseconds until a lane is checked again whose due jobs another runner is just claiming.
CONTENDED_MS = 50

log = structlog.get_logger(__name__)


class Lane:
    """`drain` returns when nothing is due and nothing runs; `wake` makes it check again."""

    def __init__(
        self,
        name: str,
        spec: LaneSpec,
        job_names: Sequence[str],
        *,
        db: Database,
        clock: Clock,
        lease: Lease,
        claims: Claims,
        run: Callable[[Sequence[Job], Gate | None], Awaitable[None]],
        pass_on: Callable[[str], None] | None,
        gate: Gate | None = None,
    ) -> None:
        self.name = name
        self._spec = spec
        self._job_names = job_names
        self._db = db
        self._clock = clock
        self._lease = lease
        self._claims = claims
        self._run = run
        self._pass_on = pass_on
        self._gate = gate
        #: The gate's last capacity; None without a gate.
        self._capacity: Capacity | None = None
        self._due_ms: int | None = None
        self._running: set[asyncio.Task[None]] = set()
        #: The only batch with a job during which other runners crashed.
        self._suspect: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._stopping = False
        self._is_owner = True

    def wake(self) -> None:
        """There may be new jobs, or new capacity."""
        self._woken.set()

    def stop(self) -> None:
        """Stops claiming; `drain` returns when running batches have ended."""
        self._stopping = True
        self.wake()

    async def drain(self) -> int | None:
        """Runs jobs until none is due. Returns when the lane should be checked again, in Unix
        milliseconds, or None if only a wake-up can bring work."""
        try:
            while True:
                self._woken.clear()
                looked_at_ms = self._clock.now_ms()
                claimed = 0 if self._stopping else await self._claim_and_start()
                full = len(self._running) >= self._batches
                if self._running and (full or not claimed):
                    await self._until_woken()
                elif not claimed and not self._woken.is_set():
                    next_look_ms = None if self._stopping else await self._next_look(looked_at_ms)
                    if not self._woken.is_set() or self._stopping:
                        return next_look_ms
        except FileLocked:
            # Another program holds the file: batches under way record their outcomes once it is free.
            if self._running:
                await asyncio.wait([*self._running])
            raise
        finally:
            # If this was cancelled, or failed.
            await cancel_and_wait(*self._running)

    @property
    def _batches(self) -> int:
        """Number of batches that may run concurrently."""
        return self._spec.concurrency if self._capacity is None else self._capacity.batches

    @property
    def _batch(self) -> int:
        """Maximum jobs of a batch."""
        of_room = None if self._capacity is None else self._capacity.batch
        return self._spec.batch if of_room is None else min(of_room, self._spec.batch)

    async def _until_woken(self) -> None:
        """Waits for a wake-up, or until the gate may have capacity again."""
        wait_s = None
        if self._capacity is not None and self._capacity.jobs <= 0:
            wait_s = max(0.0, self._capacity.next_check_ms - self._clock.now_ms()) / 1000
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._woken.wait()

    def _limit(self) -> int:
        """How many jobs may be claimed, by the gate's last capacity."""
        limit = (self._batches - len(self._running)) * self._batch
        return limit if self._capacity is None else min(limit, self._capacity.jobs)

    async def _claim_and_start(self) -> int:
        """Starts batches in the free slots; returns how many jobs were claimed."""
        if self._gate:
            self._capacity = self._gate.capacity()
        if self._limit() <= 0:
            if not (self._gate and self._gate.needs_refresh):
                return 0
            # A lane may be paused for days: checking that writes nothing.
            async with self._db.read() as tx:
                self._capacity = await self._gate.refresh(tx, acquired=False)
            if self._limit() <= 0:
                return 0
        jobs, limit = await self._claim_own() if self._spec.exclusive else await self._claim()
        if len(jobs) == limit and self._pass_on and not self._spec.exclusive:
            # There may be more than this runner can run.
            self._pass_on(self.name)
        if jobs and self._gate:
            self._gate.claimed(jobs)
        for batch in _batches(jobs, self._batch):
            task = asyncio.create_task(self._run_batch(batch))
            self._running.add(task)
            if jobs[0].is_suspect:
                self._suspect = task
            task.add_done_callback(self._on_batch_done)
        return len(jobs)

    async def _run_batch(self, jobs: Sequence[Job]) -> None:
        try:
            await self._run(jobs, self._gate)
        finally:
            if self._gate:
                self._gate.ended(jobs)

    def _on_batch_done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task is self._suspect:
            self._suspect = None
        self.wake()
        if not task.cancelled() and (error := task.exception()):
            log.error("lane_batch_lost", lane=self.name, error=repr(error))

    async def _claim(self, tx: Tx | None = None) -> tuple[Sequence[Job], int]:
        """Claims as many jobs as capacity allows; returns them with that capacity."""
        limit = self._limit()
        if limit <= 0:
            return (), limit
        suspects = self._suspect is None
        claimed = await self._claims.claim(self.name, limit, suspects=suspects, tx=tx)
        self._due_ms = claimed.due_ms
        return claimed.jobs, limit

    async def _claim_own(self) -> tuple[Sequence[Job], int]:
        """Like `_claim`, for an exclusive lane, if this runner owns it."""
        # Not durable by itself: the outcomes of the jobs are committed later, and durably.
        async with self._db.transaction(inline=True, durable=False, background=True) as tx:
            owned = await lanes.own(
                tx,
                self.name,
                runner_id=self._lease.runner_id,
                now_ms=self._clock.now_ms(),
                over_ms=self._lease.clock.over_ms(),
                lease_ms=self._lease.duration_ms,
            )
            self._is_owner = owned is not None
            if owned is None:
                return (), 0
            if owned == "taken":
                await store.interrupt(tx, self.name, runner_id=self._lease.runner_id)
            if self._gate:
                self._capacity = await self._gate.refresh(tx, acquired=owned == "taken")
            return await self._claim(tx)

    async def _next_look(self, looked_at_ms: int) -> int | None:
        """When to check again, after no job could be claimed at `looked_at_ms`."""
        if not self._is_owner:
            # Due jobs are leased by the other runner until its lease ends.
            return self._clock.now_ms() + self._lease.duration_ms // 3
        if self._capacity is not None and self._capacity.jobs <= 0:
            return self._capacity.next_check_ms
        if self._due_ms is None or self._due_ms > looked_at_ms:
            return self._due_ms
        async with self._db.read() as tx:
            if await store.has_due(tx, self.name, self._job_names, looked_at_ms):
                # Another runner is claiming it now; polling without delay would spin.
                return looked_at_ms + CONTENDED_MS
        # Due jobs are of a plugin that is not loaded. The sweeper finds later ones.
        return None


def _batches(jobs: Sequence[Job], limit: int) -> list[Sequence[Job]]:
    """The batches of up to `most` jobs. Jobs of one priority don't wait for the end of more urgent ones."""
    levels = [list(level) for _, level in groupby(jobs, key=lambda job: job.priority)]
    return [level[at : at + limit] for level in levels for at in range(0, len(level), limit)]
