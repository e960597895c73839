"""Adaptive concurrency limit of one channel: no more in flight than its platform answers in a second.

In flight is what is marked as being sent and has no recorded outcome: its outcome is unknown if the process
is killed. In the memory of the process that owns the channel's lane. Times are seconds of a monotonic clock.
See docs/decisions/0014-pacing.md.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Self

#: Maximum seconds of a quick response; the limit is the number of responses in this time.
QUICK_S = 1.0

#: The share of the limit for all mailings of a channel together; the rest is for more urgent calls that come
#: meanwhile.
BULK = 2 / 3


class ConcurrencyLimit:
    """The number of calls that may be in flight: initially `least`, and always between `least` and `most`.

    Each response within a second increases it by one, up to `least` beyond the responses of the last second.
    Each slower or missing response decreases it by one. So it doubles with each round trip while the platform
    is quick, and is `least` if most responses take longer than a second. Once a second it is cut to the same
    bound, since older measurements are obsolete.
    """

    def __init__(self, *, least: int, most: int, now_s: Callable[[], float]) -> None:
        self._least = least
        self._most = max(least, most)
        self._now_s = now_s
        self._limit = least
        self._in_flight = self._bulk_in_flight = 0
        #: Jobs that were claimed but are not in flight yet.
        self._claimed: set[str] = set()
        #: Start of the current counting interval, its responses, and those of the interval before.
        self._since_s = now_s()
        self._answers = self._answers_before = 0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def limit(self) -> int:
        now_s = self._now_s()
        if now_s - self._since_s >= QUICK_S:
            self._cut(now_s)
        return self._limit

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def available(self) -> int:
        """How many more calls may be in flight; negative after the limit has decreased."""
        return self.limit - self._in_flight

    @property
    def claimable(self) -> int:
        """How many more jobs may be claimed."""
        return self.available - len(self._claimed)

    @property
    def bulk_limit(self) -> int:
        """How many calls of mailings may be in flight."""
        return max(1, int(self.limit * BULK))

    def claimed(self, job_ids: Iterable[str]) -> None:
        """Records jobs that will be in flight soon."""
        self._claimed.update(job_ids)

    def dropped(self, job_ids: Iterable[str]) -> None:
        """Removes jobs that will not be in flight now, or were."""
        if self._claimed:
            self._claimed.difference_update(job_ids)

    def answered(self, began_s: float) -> None:
        """Records the platform's response, of any kind, to a call that started at `began_s`."""
        now_s = self._now_s()
        if now_s - self._since_s >= QUICK_S:
            self._cut(now_s)
        self._answers += 1
        if now_s - began_s > QUICK_S:
            self._shrink()
        elif self._limit < self._most and self._limit < self._least + self._recent(now_s):
            self._limit += 1
            self._wake()

    def unanswered(self) -> None:
        """Records that the platform did not respond to a call."""
        self._shrink()

    def slots(self, *, bulk: bool = False) -> "Slots":
        """Slots for one caller that has nothing in flight yet; `bulk` if it is a mailing."""
        return Slots(self, bulk=bulk)

    async def until_available(self) -> None:
        """Waits until one more call may be in flight."""
        while self.available <= 0:
            await self.until_changed()

    async def until_changed(self) -> None:
        """Waits until capacity may have increased."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _recent(self, now_s: float) -> float:
        """The approximate number of responses in the last second."""
        return self._answers + self._answers_before * (1 - (now_s - self._since_s) / QUICK_S)

    def _cut(self, now_s: float) -> None:
        # After two seconds both counts are too old.
        self._answers_before = self._answers if now_s - self._since_s < 2 * QUICK_S else 0
        self._since_s, self._answers = now_s, 0
        self._limit = min(self._limit, self._least + self._answers_before)

    def _shrink(self) -> None:
        if self._limit > self._least:
            self._limit -= 1

    def _count(self, more: int, *, bulk: bool) -> None:
        self._in_flight += more
        if bulk:
            self._bulk_in_flight += more
        if more < 0:
            self._wake()

    def _bulk_available(self) -> int:
        # Claimed jobs are more urgent.
        return min(self.claimable, self.bulk_limit - self._bulk_in_flight)

    def _wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Slots:
    """The calls in flight of one caller; none after the block of `with` ends."""

    def __init__(self, limit: ConcurrencyLimit, *, bulk: bool) -> None:
        self._limit = limit
        self._bulk = bulk
        self.count = 0

    @property
    def available(self) -> int:
        """How many more calls the caller may have in flight."""
        return self._limit._bulk_available() if self._bulk else self._limit.available

    def acquire(self, job_ids: Collection[str]) -> None:
        """Marks these jobs as in flight."""
        self._limit.dropped(job_ids)
        self.set(self.count + len(job_ids))

    def set(self, count: int) -> None:
        """Sets the number of calls in flight."""
        more, self.count = count - self.count, count
        if more:
            self._limit._count(more, bulk=self._bulk)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.set(0)
