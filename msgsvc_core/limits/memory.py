"""A limiter for one process: the times of the latest hits, in memory."""

from collections import OrderedDict, deque

from msgsvc_core.kernel.clock import Clock
from msgsvc_core.limits.contract import WhenAway, Window, check_limit

#: Idle keys checked per hit. A hit adds at most one key, so two are enough to keep up.
SWEEP_STEP = 2


class MemoryLimiter:
    """An exact sliding window; see `Limiter`.

    Memory is bounded by the hits inside their windows: every hit evicts a few idle keys. No method awaits
    between reading and writing, which makes each atomic on its event loop. Windows use monotonic time, so
    setting the clock has no effect. A process's own memory is always available, so `when_away` has no effect.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Monotonic milliseconds of the hits by key and window, in the order of the sweep.
        self._hits: OrderedDict[tuple[str, int], deque[int]] = OrderedDict()

    def __len__(self) -> int:
        """The number of keys in memory."""
        return len(self._hits)

    async def hit(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        now_ms = self._clock.monotonic_ms()
        self._sweep(now_ms)
        times = self._live_times(key, limit, window_s, now_ms)
        allowed = len(times) < limit
        if allowed:
            times.append(now_ms)
            self._hits[key, window_s] = times
        return self._window(times, limit, window_s, now_ms, allowed=allowed)

    async def peek(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        now_ms = self._clock.monotonic_ms()
        times = self._live_times(key, limit, window_s, now_ms)
        return self._window(times, limit, window_s, now_ms, allowed=len(times) < limit)

    async def open(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        """Does nothing; the counters are kept."""

    async def check(self) -> str | None:
        """Always None."""
        return None

    def _live_times(self, key: str, limit: int, window_s: int, now_ms: int) -> deque[int]:
        """The hits inside the window, oldest first."""
        check_limit(limit, window_s)
        times = self._hits.get((key, window_s))
        if times is None:
            return deque()
        while times and times[0] + window_s * 1000 <= now_ms:
            times.popleft()
        return times

    def _sweep(self, now_ms: int) -> None:
        for _ in range(min(SWEEP_STEP, len(self._hits))):
            slot, times = next(iter(self._hits.items()))
            if not times or times[-1] + slot[1] * 1000 <= now_ms:
                del self._hits[slot]
            else:
                self._hits.move_to_end(slot)

    def _window(
        self, times: deque[int], limit: int, window_s: int, now_ms: int, *, allowed: bool
    ) -> Window:
        # If the limit was lowered, there may be more hits than the limit: the next slot is freed with the hit
        # that brings their number below it, not with the oldest.
        since_ms = times[max(0, len(times) - limit)] if times else now_ms
        # Clients get wall-clock time.
        unix_ms = self._clock.now_ms()
        return Window.at(
            unix_ms,
            allowed=allowed,
            limit=limit,
            used=len(times),
            frees_at_ms=unix_ms + since_ms + window_s * 1000 - now_ms,
        )
