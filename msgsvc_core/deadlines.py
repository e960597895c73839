"""Time limits of many calls, with one timer for all of them."""

import asyncio
from types import TracebackType


class Deadlines:
    """Gives each call its time: `async with deadlines.within(10): ...` raises `TimeoutError`.

    As `asyncio.timeout` does, which sets a timer for each call; a client that sets its own spends a sixth
    of a call on it, and hardly any ever rings. Here one timer is set, for the call that ends first. When
    it rings most calls are long over, and it is set for the first of those that are not.
    """

    def __init__(self) -> None:
        self._ends: dict[asyncio.Timeout, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def within(self, seconds: float) -> "_Within":
        """The limit of one call."""
        return _Within(self, seconds)

    def add(self, limit: asyncio.Timeout, seconds: float) -> None:
        """Has `limit`, which was entered, run out in so many seconds."""
        loop = asyncio.get_running_loop()
        ends = self._ends[limit] = loop.time() + seconds
        if self._timer is None or ends < self._timer.when():
            self._set_timer(loop, ends)

    def remove(self, limit: asyncio.Timeout) -> None:
        """The call is over, in time or not."""
        self._ends.pop(limit, None)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(when, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for limit in [limit for limit, ends in self._ends.items() if ends <= now]:
            del self._ends[limit]
            limit.reschedule(now)
        if self._ends:
            self._set_timer(loop, min(self._ends.values()))


class _Within:
    """What `Deadlines.within` gives; it is entered once."""

    __slots__ = ("_deadlines", "_limit", "_seconds")

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._deadlines.add(self._limit, self._seconds)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.remove(self._limit)
        await self._limit.__aexit__(kind, error, trace)
