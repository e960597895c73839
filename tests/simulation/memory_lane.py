"""A bot's lane in memory: its queue, and what the lane and its gate use of the service."""

import heapq
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.system_messages.outbox import JOB
from msgsvc_core.config.sections import JobSettings
from msgsvc_core.jobs.claims import Claimed
from msgsvc_core.jobs.contract import BULK, Job, Reschedule
from tests.simulation.platform import SimulatedChannel
from tests.simulation.virtual_time import ProcessClock


class MemoryQueue:
    """The jobs of one lane, in the order in which `store.claim` returns them. Implements what `Lane` uses of
    `Claims`."""

    def __init__(self, bot: str, backlog: int, now_ms: Callable[[], int]) -> None:
        self.backlog = backlog
        self._lane = lane_of(bot)
        self._now_ms = now_ms
        self._numbers = count()
        self._waiting: list[tuple[int, int, str, Job]] = []
        #: Claimed jobs, by id.
        self.running: dict[str, Job] = {}
        self.completed = 0
        self.on_claim: Callable[[], None] = lambda: None
        self.completed_twice: list[str] = []

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self.running and not self.backlog

    def add(self, priority: int, chat_id: str, text: str) -> Job:
        job = self._job(priority, chat_id, text)
        self._push(job)
        return job

    async def claim(self, _lane: str, limit: int, *, suspects: bool, tx: object = None) -> Claimed:
        """As `Claims.claim`."""
        self.on_claim()
        found: list[Job] = []
        now_ms = self._now_ms()
        late: list[tuple[int, int, str, Job]] = []
        while self._waiting and len(found) < limit:
            entry = heapq.heappop(self._waiting)
            if entry[1] > now_ms:
                late.append(entry)
            else:
                found.append(replace(entry[3], deliveries=entry[3].deliveries + 1))
        for entry in late:
            heapq.heappush(self._waiting, entry)
        while self.backlog and len(found) < limit:
            self.backlog -= 1
            number = next(self._numbers)
            found.append(self._job(BULK, f"many-{number}", "Hello", number))
        self.running.update((job.job_id, job) for job in found)
        due_ms = now_ms if self.backlog else min((e[1] for e in self._waiting), default=None)
        return Claimed(found, due_ms)

    def skip(self, messages: int) -> None:
        self.backlog -= messages
        self.completed += messages

    def complete(self, job: Job) -> None:
        if self.running.pop(job.job_id, None) is None:
            self.completed_twice.append(job.job_id)
        self.completed += 1

    def put_back(self, back: Iterable[Reschedule]) -> None:
        for each in back:
            job = self.running.pop(each.job.job_id)
            attempts = job.attempts + (1 if each.counts else 0)
            run_at_ms = job.run_at_ms if each.at_ms is None else each.at_ms
            self._push(replace(job, attempts=attempts, run_at_ms=run_at_ms))

    def expire(self) -> None:
        """The leases of a dead runner's jobs end."""
        for job in list(self.running.values()):
            self._push(self.running.pop(job.job_id))

    def _push(self, job: Job) -> None:
        heapq.heappush(self._waiting, (job.priority, job.run_at_ms, job.job_id, job))

    def _job(self, priority: int, chat_id: str, text: str, number: int | None = None) -> Job:
        number = next(self._numbers) if number is None else number
        now_ms = self._now_ms()
        return Job(
            f"job_{number:012}",
            JOB,
            self._lane,
            {"call": "send", "chat_id": chat_id, "sealed": text},
            1,
            0,
            now_ms,
            None,
            priority,
            now_ms,
        )


class MemoryContext:
    """What `BotCalls` uses of a `JobContext`."""

    def __init__(self, queue: MemoryQueue) -> None:
        self._queue = queue

    @asynccontextmanager
    async def completing(self, *jobs: Job) -> AsyncIterator[None]:
        yield
        for job in jobs:
            self._queue.complete(job)

    @asynccontextmanager
    async def putting_back(self, back: Sequence[Reschedule]) -> AsyncIterator[None]:
        yield
        self._queue.put_back(back)


class NoDatabase:
    """A gate's pause is written and never read: the lane has one owner at a time here."""

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        yield

    transaction = read


class _States:
    """What a gate uses of `ChannelStates`; keeps the pause for the next owner."""

    def __init__(self) -> None:
        self.until_ms = 0

    async def find(self, _tx: object, _key: str) -> Any:
        return SimpleNamespace(
            paused_until_ms=self.until_ms, stopped=False, outage_since_ms=None, outage_trial=0
        )

    async def pause(self, _tx: object, _key: str, until_ms: int) -> None:
        self.until_ms = max(self.until_ms, until_ms)


def gates_in_memory(clock: ProcessClock, channel: SimulatedChannel) -> OutboundGates:
    """The gates of a process that has one bot."""

    @asynccontextmanager
    async def borrow(_key: str) -> AsyncIterator[SimulatedChannel]:
        yield channel

    channels = SimpleNamespace(get=lambda _key: channel, borrow=borrow)
    metrics = SimpleNamespace(waited=lambda *_: None, refused=lambda *_: None)
    return OutboundGates(
        clock=clock,
        db=cast("Any", NoDatabase()),
        jobs=cast("Any", None),
        channels=cast("Any", channels),
        states=cast("Any", _States()),
        outages=cast("Any", None),
        metrics=cast("Any", metrics),
        settings=JobSettings(),
    )
