"""Moves a service's clock, and has it do what is due by then."""

from msgsvc_core.db import Database
from msgsvc_core.jobs import JobQueue, lanes
from msgsvc_core.kernel.clock import Clock
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.work import is_idle, until

#: Steps in which the clock moves, each of a minute or more. What follows from a job, like the second
#: message of a drip campaign, is then due at its own time, and not when all is over.
STEPS = 24
LEAST_STEP_S = 60.0

#: Seconds that work gets to end between two steps.
PATIENCE_S = patient(30.0)


class TimeTravel:
    """Moves `clock` forward, step by step, and waits for jobs."""

    def __init__(self, *, clock: MovableClock, db: Database, jobs: JobQueue) -> None:
        self._clock = clock
        self._db = db
        self._jobs = jobs

    @property
    def clock(self) -> Clock:
        """The clock that is moved."""
        return self._clock

    @property
    def ahead_s(self) -> float:
        """Seconds by which the clock is ahead of the machine's."""
        return self._clock.ahead_s

    async def advance(self, seconds: float, *, steps: int = STEPS) -> None:
        """Moves the clock forward; returns when nothing is due any more. Raises `TimeoutError` if jobs go on
        for longer than `PATIENCE_S`."""
        await self.settle()
        # In whole milliseconds, as the clock has them: a remainder of less would never be used up.
        left_ms = round(seconds * 1000)
        step_ms = round(max(LEAST_STEP_S, seconds / steps) * 1000)
        while left_ms > 0:
            moved_ms = min(left_ms, step_ms)
            self._clock.advance(moved_ms / 1000)
            left_ms -= moved_ms
            await self._wake_lanes()
            await self.settle()

    async def settle(self) -> None:
        """Returns when no job is due or running. Raises `TimeoutError`."""
        await until(self._is_idle, timeout_s=PATIENCE_S)

    async def _wake_lanes(self) -> None:
        """The runner's timers run in real time."""
        async with self._db.read() as tx:
            found = await lanes.with_work(tx)
        for lane, due_ms in found.items():
            self._jobs.wake(lane, due_ms)

    async def _is_idle(self) -> bool:
        return await is_idle(self._db, self._clock, lambda: self._jobs.in_flight)
