"""Lease expiry on a wall clock that may be set.

Leases are wall-clock times, because runners on many machines compare them. Setting the clock forward makes
all of them look expired, including those of living runners; so after that no lease counts as expired until
every living runner has renewed its own on the new time. Setting it back leaves the leases of dead runners
far in the future; `FutureLeases` finds those.
"""

from collections.abc import Collection

import structlog

from msgsvc_core.kernel.clock import Clock

#: A lease: its holder, and its end in Unix milliseconds.
Held = tuple[str, int]

log = structlog.get_logger(__name__)


class LeaseClock:
    """The time by which one runner checks leases of `lease_ms`, which are renewed after a third of that."""

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self._clock = clock
        self._lease_ms = lease_ms
        self._offset_ms = self._offset()
        #: The monotonic time until which no lease counts as expired.
        self._doubtful_until_ms = 0

    def over_ms(self) -> int:
        """Leases that end at or before this Unix millisecond have expired; 0 if none counts as expired."""
        offset_ms, passed_ms = self._offset(), self._clock.monotonic_ms()
        step_ms = offset_ms - self._offset_ms
        self._offset_ms = offset_ms
        # A smaller jump shortens no lease noticeably: a third of it may have passed at renewal. And a
        # slewed clock moves little between two checks.
        if abs(step_ms) > self._lease_ms // 6:
            log.warning("clock_was_set", by_s=step_ms / 1000)
            self._doubtful_until_ms = passed_ms + self._lease_ms // 2
        return 0 if passed_ms < self._doubtful_until_ms else self._clock.now_ms()

    def _offset(self) -> int:
        return self._clock.now_ms() - self._clock.monotonic_ms()


class FutureLeases:
    """Leases that end later than any granted now, by `lease_ms` and a margin.

    Their holders had another clock. A living runner renews them; `dead` returns the others.
    """

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self._clock = clock
        self._lease_ms = lease_ms
        #: The monotonic milliseconds at which each was first seen.
        self._seen_ms: dict[Held, int] = {}

    def from_ms(self) -> int:
        """Leases that end after this Unix millisecond are from the future."""
        return self._clock.now_ms() + 2 * self._lease_ms

    def dead(self, found: Collection[Held]) -> list[Held]:
        """Those of the given leases that nobody has renewed for the duration of a lease."""
        passed_ms = self._clock.monotonic_ms()
        self._seen_ms = {held: self._seen_ms.get(held, passed_ms) for held in found}
        return [held for held, seen in self._seen_ms.items() if passed_ms - seen >= self._lease_ms]
