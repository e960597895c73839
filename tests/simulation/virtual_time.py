"""Virtual time: event loops whose timers cost nothing, one for each simulated process.

A loop runs what is ready and then says when its next timer is due; it never waits. `VirtualTime.run` moves
the time to the earliest of these, so hours pass in seconds. A process is killed by not running its loop
again, as by SIGKILL: no `finally` runs.
"""

import asyncio
import heapq
import math
import random
import selectors
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

from msgsvc_core.db import sqlite

T = TypeVar("T")

#: Seconds that a timer takes at least: code that waits for less than a float can add to the time, and looks
#: again, would do so for ever while the time stands still.
SHORTEST_TIMER_S = 1e-6

#: Unix milliseconds at which every simulation starts.
START_MS = round(datetime(2026, 1, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)


class VirtualTime:
    """The monotonic time of all loops, in seconds, and the wall clock of the machine."""

    def __init__(self) -> None:
        self.now_s = 0.0
        #: By how much the wall clock has been set.
        self.set_by_ms = 0
        self.loops: list[VirtualLoop] = []
        #: What happens at its time beside the loops: faults and arrivals.
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def now_ms(self) -> int:
        return START_MS + self.set_by_ms + round(self.now_s * 1000)

    def set_clock(self, by_s: float) -> None:
        """Sets the machine's wall clock forward, or back."""
        self.set_by_ms += round(by_s * 1000)

    def at(self, at_s: float, event: Callable[[], None]) -> None:
        """Calls `event` at that time."""
        heapq.heappush(self._events, (max(at_s, self.now_s), next(self._numbers), event))

    def run(self, until: Callable[[], bool], *, most_s: float) -> None:
        """Runs loops and events until `until` is true between two moments. Raises `TimeoutError` at
        `most_s`."""
        while not until():
            next_s = min((loop.next_s for loop in self.loops), default=math.inf)
            if self._events:
                next_s = min(next_s, self._events[0][0])
            if next_s > most_s:
                self.now_s = max(self.now_s, most_s)
                raise TimeoutError(f"not finished after {most_s:.0f} s")
            self.now_s = max(self.now_s, next_s)
            while self._events and self._events[0][0] <= self.now_s:
                heapq.heappop(self._events)[2]()
            for loop in list(self.loops):
                if loop.next_s <= self.now_s:
                    loop.run_until_idle()


class _Idle(selectors.BaseSelector):
    """Waits for nothing: tells the loop how long it would have waited."""

    def __init__(self) -> None:
        self.wait_s: float | None = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}
        self.on_idle: Callable[[], None] = lambda: None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[Any]:
        self.wait_s = timeout
        if timeout is None or timeout > 0:
            self.on_idle()
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop of one simulated process. What it gives to threads runs at once, in no time."""

    def __init__(self, virtual: VirtualTime) -> None:
        self._virtual = virtual
        self._idle = _Idle()
        super().__init__(self._idle)
        self._idle.on_idle = self.stop
        #: When it has something to do next, in seconds of the virtual time.
        self.next_s = 0.0
        virtual.loops.append(self)

    def time(self) -> float:
        return self._virtual.now_s

    def call_soon(self, callback: Any, *arguments: Any, context: Any = None) -> asyncio.Handle:
        # Also called from outside, by events.
        self.next_s = min(self.next_s, self._virtual.now_s)
        return super().call_soon(callback, *arguments, context=context)

    def call_at(
        self, when: float, callback: Any, *arguments: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        when = max(when, self._virtual.now_s + SHORTEST_TIMER_S)
        return super().call_at(when, callback, *arguments, context=context)

    def run_until_idle(self) -> None:
        """Runs what is ready now, and what that makes ready."""
        self.run_forever()
        wait_s = self._idle.wait_s
        self.next_s = (
            math.inf if wait_s is None else self._virtual.now_s + max(wait_s, SHORTEST_TIMER_S)
        )

    def run_in_executor(
        self, executor: Executor | None, work: Callable[..., T], *arguments: Any
    ) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            future.set_exception(error)
        return future

    def finish(self, work: Any, *, most_s: float = 60.0) -> Any:
        """The result of `work`, which all loops run for."""
        task = self.create_task(work)
        self._virtual.run(task.done, most_s=self._virtual.now_s + most_s)
        return task.result()

    def kill(self) -> None:
        """Nothing in it runs any more."""
        self._virtual.loops.remove(self)
        self.next_s = math.inf

    def bury(self) -> None:
        """Ends the tasks of a killed loop at the end of the simulation, whatever they do then."""
        self.set_exception_handler(lambda _loop, _context: None)
        for _ in range(20):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.run_forever()
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # of asyncio's own
        self.close()


class ProcessClock:
    """A `Clock`: the virtual time, and the machine's wall clock."""

    def __init__(self, virtual: VirtualTime) -> None:
        self._virtual = virtual

    def time(self) -> float:
        return self._virtual.now_ms() / 1000

    def now_ms(self) -> int:
        return self._virtual.now_ms()

    def monotonic_ms(self) -> int:
        return round(self._virtual.now_s * 1000)


class InlineConnection:
    """What `SQLiteBackend` uses of an aiosqlite connection, without its thread."""

    def __init__(self, path: Any, **options: Any) -> None:
        self._connection = sqlite3.connect(path, **{**options, "timeout": 0})

    def __await__(self) -> Any:
        yield from ()
        return self

    @property
    def row_factory(self) -> Any:
        return self._connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._connection.row_factory = factory

    async def execute(self, sql: str, params: Any = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, params)

    async def execute_fetchall(self, sql: str, params: Any = ()) -> list[sqlite3.Row]:
        return self._connection.execute(sql, params).fetchall()

    async def close(self) -> None:
        self._connection.close()

    def kill(self) -> None:
        """Rolls back what is open, as SQLite does after a crash."""
        with suppress(sqlite3.Error):
            self._connection.close()


@contextmanager
def virtual_time(seed: int) -> Iterator[VirtualTime]:
    """The time, the ids and the random numbers of a simulation, for the code that takes none of them as an
    argument; put back afterwards."""
    virtual, state = VirtualTime(), random.getstate()
    ticks = 0

    def time_ns() -> int:
        # Ids are made from it: they sort by creation, also when the wall clock is set back.
        nonlocal ticks
        ticks += 1
        return START_MS * 1_000_000 + round(virtual.now_s * 1e9) + ticks

    random.seed(seed)
    try:
        with (
            patch.object(time, "monotonic", lambda: virtual.now_s),
            patch.object(time, "time_ns", time_ns),
            patch.object(sqlite, "aiosqlite", SimpleNamespace(connect=InlineConnection)),
        ):
            yield virtual
    finally:
        random.setstate(state)
