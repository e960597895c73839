"""Lease expiry on a wall clock that may be set.

Leases are wall-clock times, because runners on many machines compare them. Setting the clock forward makes
all of them look expired, including those of living runners; so after that no lease counts as expired until
every living runner has renewed its own on the new time. Setting it back leaves the leases of dead runners
far in the future; `FutureLeases` finds those. And waiting jobs are due by the old time: `set_back` says
which.
"""

from collections.abc import Collection

import structlog

from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.values import value_object

#: A lease: its holder, and its end in Unix milliseconds.
Held = tuple[str, int]

log = structlog.get_logger(__name__)


@value_object
class SetBack:
    """The clock was set back to `to_ms`, or to a little later; `from_ms` is the latest time that it had
    before. Unix milliseconds. These times come twice, so they don't order what was enqueued in them."""

    to_ms: int
    from_ms: int


class LeaseClock:
    """The time by which one runner checks leases of `lease_ms`, which are renewed after a third of that."""

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self._clock = clock
        self._lease_ms = lease_ms
        self._offset_ms = self._offset()
        #: The monotonic time until which no lease counts as expired.
        self._doubtful_until_ms = 0
        #: The monotonic time of the last check.
        self._checked_ms = clock.monotonic_ms()
        #: How far the clock was last set back, as far as `over_ms` has noticed it.
        self.set_back: SetBack | None = None

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
            if step_ms < 0:
                now_ms = self._clock.now_ms()
                before = self.set_back.from_ms if self.set_back else 0
                to_ms = now_ms - (passed_ms - self._checked_ms)
                self.set_back = SetBack(to_ms, max(before, now_ms - step_ms))
        self._checked_ms = passed_ms
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
