"""Adaptive concurrency limit of one channel: no more in flight than its platform answers in a second.

In flight is what stands as being sent and has no outcome written: what a process that is killed leaves in
doubt. Of the process that owns the channel's lane; times are seconds of a clock that only grows. See
docs/decisions/0056-in-flight.md.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Self

#: Seconds within which an answer is quick; what was answered in so many may be in flight.
QUICK_S = 1.0

#: The part of the limit that mailings may use, all of a channel together: the rest is for what is more
#: urgent, and comes meanwhile.
BULK = 2 / 3


class ConcurrencyLimit:
    """How many may be in flight: `least` at first, and never fewer nor more than `most`.

    Each answer within a second makes it one more, up to `least` beyond what was answered in the last second;
    each that took longer, or did not come, one fewer. So it doubles with each round trip while the platform
    is quick, and is `least` where most answers take longer than a second. Once a second it is cut to the
    same bound: what was measured before says nothing of now.
    """

    def __init__(self, *, least: int, most: int, now_s: Callable[[], float]) -> None:
        self._least = least
        self._most = max(least, most)
        self._now_s = now_s
        self._limit = least
        self._in_flight = self._bulk_in_flight = 0
        #: Jobs that were claimed and are not in flight yet.
        self._claimed: set[str] = set()
        #: Since when answers are counted, how many there were, and how many in the second before.
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
        """How many more may be in flight; fewer than none while the limit has become less."""
        return self.limit - self._in_flight

    @property
    def claimable(self) -> int:
        """How many jobs may be claimed beside those that are."""
        return self.available - len(self._claimed)

    @property
    def bulk_limit(self) -> int:
        """How many of mailings may be in flight."""
        return max(1, int(self.limit * BULK))

    def claimed(self, job_ids: Iterable[str]) -> None:
        """Jobs that are to be in flight soon."""
        self._claimed.update(job_ids)

    def dropped(self, job_ids: Iterable[str]) -> None:
        """Jobs that are not going to be in flight now, or have been."""
        if self._claimed:
            self._claimed.difference_update(job_ids)

    def answered(self, began_s: float) -> None:
        """The platform answered a call that began at `began_s`, whatever it said."""
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
        """The platform did not answer a call."""
        self._shrink()

    def slots(self, *, bulk: bool = False) -> "Slots":
        """For one caller, of which nothing is in flight yet; `bulk` says that it is a mailing."""
        return Slots(self, bulk=bulk)

    async def until_available(self) -> None:
        """Waits until one more may be in flight."""
        while self.available <= 0:
            await self.until_changed()

    async def until_changed(self) -> None:
        """Waits until there may be room for more."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _recent(self, now_s: float) -> float:
        """About how many answers came in the last second."""
        return self._answers + self._answers_before * (1 - (now_s - self._since_s) / QUICK_S)

    def _cut(self, now_s: float) -> None:
        # After two seconds nothing of what was counted is of the last one.
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
        # What was claimed is more urgent.
        return min(self.claimable, self.bulk_limit - self._bulk_in_flight)

    def _wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


class Slots:
    """What one caller has in flight; nothing any more when the block of `with` ends."""

    def __init__(self, limit: ConcurrencyLimit, *, bulk: bool) -> None:
        self._limit = limit
        self._bulk = bulk
        self.count = 0

    @property
    def available(self) -> int:
        """How many more the caller may have in flight."""
        return self._limit._bulk_available() if self._bulk else self._limit.available

    def acquire(self, job_ids: Collection[str]) -> None:
        """These are in flight from now on."""
        self._limit.dropped(job_ids)
        self.set(self.count + len(job_ids))

    def set(self, count: int) -> None:
        """So many are in flight from now on."""
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
