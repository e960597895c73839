"""asyncio: yielding to the event loop, cancelling tasks, and timeouts of many calls with one timer."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, TypeVar

import structlog

#: uvloop's clock has millisecond resolution: a timer may fire slightly early.
RESOLUTION_S = 0.001


class TimeoutPool:
    """Timeouts of many concurrent calls on one timer: `with pool.timeout(10): await ...` raises
    `TimeoutError`.

    Like `asyncio.timeout`, which sets a timer per call. For an HTTP client that is a fifth of the cost of a
    call, and hardly any timer ever fires. Here one timer is set for the earliest deadline and rescheduled
    when it fires.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        #: The calls in progress, with their deadlines in the loop's time.
        self._running: dict[PooledTimeout, float] = {}
        self._timer: asyncio.Handle | None = None
        #: Loop time at which the timer fires; uvloop does not report it for a timer that is due
        #: immediately.
        self._fires_at = math.inf

    def timeout(self, seconds: float) -> "PooledTimeout":
        """The timeout of one call, entered in the task that makes it."""
        return PooledTimeout(self, seconds)

    def add(self, call: "PooledTimeout", seconds: float) -> None:
        """Starts the timeout of a call."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The timer belonged to a loop that has ended.
            self._loop, self._timer, self._fires_at = loop, None, math.inf
            self._running.clear()
        ends = self._running[call] = loop.time() + seconds
        if ends < self._fires_at:
            self._set_timer(loop, ends)

    def remove(self, call: "PooledTimeout") -> None:
        """The call has ended, in time or not."""
        self._running.pop(call, None)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(when, self._on_timer, loop)
        self._fires_at = when

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._fires_at = math.inf
        now = loop.time() + RESOLUTION_S
        for call in [call for call, ends in self._running.items() if ends <= now]:
            del self._running[call]
            call.expire()
        if self._running:
            self._set_timer(loop, min(self._running.values()))


class PooledTimeout:
    """The timeout of one call, made by `TimeoutPool.timeout`; entered once."""

    __slots__ = ("_cancelling", "_has_expired", "_pool", "_seconds", "_task")

    def __init__(self, pool: TimeoutPool, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds
        self._has_expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "calls are made in tasks"
        self._task = task
        self._cancelling = task.cancelling()
        self._pool.add(self, self._seconds)

    def expire(self) -> None:
        """The deadline has passed."""
        self._has_expired = True
        self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.remove(self)
        if not self._has_expired:
            return
        # If someone else cancelled the task too, the cancellation stands.
        is_ours_alone = self._task.uncancel() <= self._cancelling
        if is_ours_alone and kind is asyncio.CancelledError:
            raise TimeoutError from error


T = TypeVar("T")

#: Items processed per turn of the event loop. Larger batches are up to a fifth faster, but block
#: everything else for longer.
BATCH = 25


async def yield_every(items: Iterable[T], batch: int = BATCH) -> AsyncIterator[T]:
    """Yields `items`, `batch` of them per turn of the event loop."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % batch == 0:
            await asyncio.sleep(0)


#: Seconds after which a cancelled task that is still running is cancelled again.
CANCEL_AGAIN_S = 10.0

log = structlog.get_logger(__name__)


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and waits until they have ended.

    A task that is still running after `CANCEL_AGAIN_S` is cancelled again: code of plugins or libraries may
    have swallowed the cancellation. If the caller is cancelled meanwhile, so are the tasks, and the
    cancellation is raised once they have ended.
    """
    going_on, cancelled = set(tasks), None
    while going_on:
        for task in going_on:
            task.cancel()
        try:
            _ended, going_on = await asyncio.wait(going_on, timeout=CANCEL_AGAIN_S)
        except asyncio.CancelledError as error:
            cancelled = error
            going_on = {task for task in going_on if not task.done()}
        else:
            if going_on:
                log.warning("tasks_go_on", tasks=sorted(task.get_name() for task in going_on))
    for task in tasks:
        if not task.cancelled():
            # Retrieve the exception, or asyncio would log that it was never retrieved.
            task.exception()
    if cancelled is not None:
        raise cancelled
