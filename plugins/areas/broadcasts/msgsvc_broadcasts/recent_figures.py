"""Figures that take long to count, for pages that poll."""

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import Mailing

#: Figures are kept for so many times as long as they took: counting takes a percent of the time at most.
REST = 100

#: Broadcasts of which figures are kept, and recipients that such a one has at least.
KEPT, MANY = 64, 5000

T = TypeVar("T")


@value_object
class Counted(Generic[T]):
    """Figures, when they were counted, and how long that took."""

    figures: list[T]
    at_ms: int
    took_s: float


class RecentFigures(Generic[T]):
    """Keeps the figures of broadcasts for `REST` times as long as they took, unless the state changes: of
    100,000 recipients they take half a second."""

    def __init__(self) -> None:
        self._counted: dict[Hashable, Counted[T]] = {}

    async def get(
        self, mailing: Mailing, now_ms: int, count: Callable[[], Awaitable[list[T]]]
    ) -> Counted[T]:
        """Those that are kept, or new ones."""
        key = (*mailing.key, mailing.status, mailing.stage, mailing.winner, mailing.purged_at_ms)
        known = self._counted.get(key)
        if known is not None and now_ms - known.at_ms < known.took_s * 1000 * REST:
            return known
        began_s = time.perf_counter()
        figures = await count()
        if len(self._counted) >= KEPT:
            self._counted.clear()
        counted = Counted(figures, now_ms, time.perf_counter() - began_s)
        if mailing.total >= MANY:
            self._counted[key] = counted
        return counted
