"""Limits a process's concurrent calls to a webhook, and how many deliveries it claims ahead."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from weakref import WeakValueDictionary

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Capacity, Job, JobQueue, LaneSpec
from msgsvc_core.kernel.clock import Clock

#: Concurrent calls of a process to one webhook (decision 0075: concurrency 8).
CALLS = 8

#: Seconds of work that are claimed ahead, and the maximum number of deliveries. For a receiver that takes
#: 10 s per call nothing is claimed ahead, so that other processes can take what waits.
AHEAD_S, MOST_AHEAD = 1.0, 400

#: Deliveries of one batch, and batches that may be open: one of each may wait for a slow call, and
#: there are no more slow calls than `CALLS`.
BATCH, BATCHES = 200, 4 * CALLS

#: What a call counts for in the average of the last ones.
WEIGHT = 0.1

#: Average seconds per call from which a receiver counts as slow, and the interval between starts of calls
#: to slow receivers: calls that start together time out together, and opening hundreds of connections
#: delays all others.
SLOW_S, SLOW_PAUSE_S = 1.0, 0.004

#: Milliseconds after which a lane with its hands full is looked at again; it is woken before.
LOOK_MS = 1000

#: Makes the call of a job, and raises nothing.
Attempt = Callable[[Job], Awaitable[None]]


class Calls:
    """The calls to one webhook from this process; the gate of its lane.

    `slow_turn` waits until one more call to a slow receiver may start.
    """

    def __init__(
        self, clock: Clock, wake: Callable[[], None], slow_turn: Callable[[], Awaitable[None]]
    ) -> None:
        self._clock = clock
        self._wake = wake
        self._slow_turn = slow_turn
        self._waiting: deque[tuple[Job, Attempt]] = deque()
        #: Those at work, and whose call each makes. They are the lane's, not a batch's: where two batches
        #: overlapped, a place that went from one to the other cost more than what is made in it.
        self._callers: dict[asyncio.Task[None], Attempt | None] = {}
        #: Jobs that are claimed, and whose calls have not ended.
        self._in_hand: set[str] = set()
        self._call_s: float | None = None
        self._is_full = False

    def make(self, jobs: Sequence[Job], attempt: Attempt) -> None:
        """Has `attempt` called with each job, in their order, after what waits already."""
        self._waiting.extend((job, attempt) for job in jobs)
        self._set_to_work()

    def give_up(self, attempt: Attempt) -> None:
        """Makes no more calls of that `attempt`, and breaks off those under way."""
        self._waiting = deque(one for one in self._waiting if one[1] != attempt)
        for caller, current in self._callers.items():
            if current == attempt:
                caller.cancel()

    def _set_to_work(self) -> None:
        for _ in range(min(CALLS - len(self._callers), len(self._waiting))):
            # Not in the context of the batch: its names would stand in the logs of others.
            caller = asyncio.create_task(self._call(), context=Context())
            self._callers[caller] = None
            caller.add_done_callback(self._caller_ended)

    def _caller_ended(self, caller: asyncio.Task[None]) -> None:
        del self._callers[caller]
        self._set_to_work()

    async def _call(self) -> None:
        """Makes one call after the other, until none waits."""
        loop, caller = asyncio.get_running_loop(), asyncio.current_task()
        assert caller is not None
        while self._waiting:
            job, attempt = self._waiting.popleft()
            self._callers[caller] = attempt
            if self.is_slow:
                await self._slow_turn()
            began_s = loop.time()
            await attempt(job)
            self.over(job, loop.time() - began_s)

    def over(self, job: Job, took_s: float) -> None:
        """The call of a job has ended, after so long."""
        self._in_hand.discard(job.job_id)
        known_s = took_s if self._call_s is None else self._call_s
        self._call_s = known_s + WEIGHT * (took_s - known_s)
        if self._is_full and self._has_room(self._ahead()):
            self._is_full = False
            self._wake()

    @property
    def is_slow(self) -> bool:
        return self._call_s is not None and self._call_s > SLOW_S

    def capacity(self) -> Capacity:
        ahead = self._ahead()
        self._is_full = not self._has_room(ahead)
        jobs = 0 if self._is_full else CALLS + ahead - len(self._in_hand)
        return Capacity(jobs, BATCHES, self._clock.now_ms() + LOOK_MS)

    def claimed(self, jobs: Sequence[Job]) -> None:
        self._in_hand.update(job.job_id for job in jobs)

    def ended(self, jobs: Sequence[Job]) -> None:
        self._in_hand.difference_update(job.job_id for job in jobs)

    def _ahead(self) -> int:
        """Calls that are likely to be made in the next `AHEAD_S`."""
        if self._call_s is None:
            return 0
        return min(MOST_AHEAD, round(AHEAD_S * CALLS / max(self._call_s, 0.001)))

    def _has_room(self, ahead: int) -> bool:
        # Half of it in one claim, because each claim costs a transaction.
        return len(self._in_hand) < CALLS + ahead // 2

    @property
    def needs_refresh(self) -> bool:
        return False

    async def refresh(self, tx: Tx, *, acquired: bool) -> Capacity:
        """Not needed: these lanes are not exclusive."""
        return self.capacity()

    def put_back(self, job: Job, until_ms: int) -> None:
        """Deliveries have no order to be kept."""


class CallsByLane:
    """The `Calls` of each active lane of this process."""

    def __init__(self, *, clock: Clock, jobs: JobQueue) -> None:
        self._clock = clock
        self._jobs = jobs
        # Held by lanes and batches: when the last has ended, nothing is left of it.
        self._known: WeakValueDictionary[str, Calls] = WeakValueDictionary()
        self._slow_at_s = 0.0

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, lane: str) -> Calls:
        calls = self._known.get(lane)
        if calls is None:
            wake = partial(self._jobs.wake, lane, 0)
            calls = self._known[lane] = Calls(self._clock, wake, self.slow_turn)
        return calls

    async def slow_turn(self) -> None:
        """Waits until one more call to a slow receiver may start."""
        now_s = asyncio.get_running_loop().time()
        at_s = max(now_s, self._slow_at_s + SLOW_PAUSE_S)
        self._slow_at_s = at_s
        if at_s > now_s:
            await asyncio.sleep(at_s - now_s)


#: Prefix of its lanes' names.
LANE = "webhook"


def webhook_lanes(calls: CallsByLane) -> LaneSpec:
    """One lane per webhook, so that a slow receiver delays no other."""
    return LaneSpec(LANE, concurrency=BATCHES, batch=BATCH, gate=calls.__getitem__)
