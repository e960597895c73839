"""Measures how long the event loop is kept by one step, in the processor's time of its thread.

    async with longest_step() as steps:
        steps.restart()
        await asyncio.create_task(ask())
        assert steps.longest_s < most_s()

The wall's time would count what else the machine does. A step is what the loop runs between two looks at who
else waits, so nobody is answered during one.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgsvc_devkit.deadlines import WORK_MS

T = TypeVar("T")

#: Seconds of the processor that one step may take, on the machine for which deadlines are written.
MOST_S = 0.1

#: How often a step that takes longer is repeated before it counts: caches are filled on the first way.
ROUNDS = 3


class Steps:
    """The longest step of the loop since `restart`."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    def restart(self) -> None:
        self.longest_s = 0.0

    def record(self, seconds: float) -> None:
        self.longest_s = max(self.longest_s, seconds)

    async def of(self, work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
        """The longest step of `work`, in seconds, and what it returns. If that is too long, the least of some
        rounds."""
        least = float("inf")
        for _ in range(ROUNDS):
            # The step in which we are ends before the one that is measured.
            await asyncio.sleep(0)
            self.restart()
            answer = await asyncio.ensure_future(work())
            await asyncio.sleep(0)
            least = min(least, self.longest_s)
            if least <= most_s():
                break
            # Others may have made the machine slower since.
            measure_pace()
        return least, answer


@contextmanager
def measured_steps() -> Iterator[Steps]:
    """Measures the steps of the running loop, and collects no garbage: what the test suite keeps in memory is
    not the service's."""
    steps = Steps()
    run = asyncio.events.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        steps.record(time.thread_time() - began)

    asyncio.events.Handle._run = measured  # type: ignore[method-assign]  # every step passes here
    gc.disable()
    try:
        yield steps
    finally:
        gc.enable()
        asyncio.events.Handle._run = run  # type: ignore[method-assign]  # as it was


_pace: list[float] = []


def most_s() -> float:
    """Seconds of the processor that one step may take on this machine."""
    if not _pace:
        measure_pace()
    return MOST_S * max(_pace)


def measure_pace() -> None:
    spent_ms = statistics.median(_work_ms() for _ in range(9))
    _pace.append(max(1.0, spent_ms / WORK_MS))


def _work_ms() -> float:
    """The work of `msgsvc_devkit.deadlines`, by the processor's clock."""
    began = time.thread_time()
    total = 0
    for number in range(200_000):
        total += number % 7
    assert total
    return 1000 * (time.thread_time() - began)
