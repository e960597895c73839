"""Business hours: when a desk is open, and how much of the time it is.

Pure arithmetic on Unix milliseconds. Hours are those of a clock on the wall in the desk's time zone, so a day
on which the clocks change has as many of them as pass: an opening lasts from the first minute of its day at
which the clock has reached `opens`, to the last at which it has not reached `closes`.
"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgsvc_core.kernel.time_zones import local_of, ms_of
from msgsvc_core.kernel.values import value_object

DAY_MINUTES = 24 * 60

#: Days that are looked through for an opening; time that is not over by then ends with them. It bounds the
#: work for a desk that is open a minute a week.
DAYS_AHEAD = 1000

#: Minutes of the local day as (opens, closes), in order and without overlaps.
Openings = tuple[tuple[int, int], ...]

#: A period as (start, end), Unix milliseconds.
Period = tuple[int, int]

_ALL_DAY: Openings = ((0, DAY_MINUTES),)

#: Milliseconds from which on a period is given in parts: around the clock none would end.
_LONGEST_MS = 7 * DAY_MINUTES * 60_000


@value_object
class BusinessHours:
    """When a desk is open. Without `weekly` it is open around the clock, but for its holidays."""

    zone: ZoneInfo
    #: By weekday, 0 for Monday; a day that is missing is closed.
    weekly: Mapping[int, Openings]
    #: Local days on which it is closed.
    holidays: frozenset[date] = frozenset()

    def is_open(self, at_ms: int) -> bool:
        start_ms, _end_ms = next(self._periods(at_ms), (at_ms + 1, 0))
        return start_ms <= at_ms

    def next_opening(self, at_ms: int) -> int | None:
        """The first moment from `at_ms` on at which it is open; None if there is none within `DAYS_AHEAD`."""
        period = next(self._periods(at_ms), None)
        return None if period is None else max(at_ms, period[0])

    def add(self, at_ms: int, duration_ms: int) -> int:
        """The first moment by which it has been open for so long since `at_ms`."""
        if duration_ms <= 0:
            return at_ms
        left_ms, reached_ms = duration_ms, at_ms
        for start_ms, end_ms in self._periods(at_ms):
            begin_ms = max(at_ms, start_ms)
            if begin_ms + left_ms <= end_ms:
                return begin_ms + left_ms
            left_ms -= end_ms - begin_ms
            reached_ms = end_ms
        return max(reached_ms, self._day_ms(self._day(at_ms) + timedelta(days=DAYS_AHEAD), 0))

    def between(self, from_ms: int, to_ms: int) -> int:
        """Milliseconds for which it was open between two moments; 0 if `to_ms` is not the later one."""
        total_ms = 0
        for start_ms, end_ms in self._periods(from_ms, to_ms):
            total_ms += max(0, min(end_ms, to_ms) - max(start_ms, from_ms))
        return total_ms

    def end_of_day(self, at_ms: int) -> int:
        """When the local day of `at_ms` ends."""
        return self._day_ms(self._day(at_ms), DAY_MINUTES)

    def _periods(self, from_ms: int, to_ms: int | None = None) -> Iterator[Period]:
        """The periods that end after `from_ms`, in order, apart from each other; those that begin before
        `to_ms`, or within `DAYS_AHEAD`."""
        # The day before: a change of the clocks may carry its end over midnight.
        first = self._day(from_ms) - timedelta(days=1)
        days = DAYS_AHEAD if to_ms is None else (self._day(to_ms) - first).days + 1
        pending: Period | None = None
        for offset in range(days + 1):
            for start_ms, end_ms in self._periods_of(first + timedelta(days=offset)):
                if end_ms <= from_ms:
                    continue
                if pending is None:
                    pending = start_ms, end_ms
                elif start_ms <= pending[1]:
                    pending = pending[0], max(pending[1], end_ms)
                else:
                    yield pending
                    pending = start_ms, end_ms
            if pending is not None and pending[1] - pending[0] > _LONGEST_MS:
                yield pending
                pending = None
        if pending is not None:
            yield pending

    def _periods_of(self, day: date) -> Iterator[Period]:
        if day in self.holidays:
            return
        openings = self.weekly.get(day.weekday(), ()) if self.weekly else _ALL_DAY
        for opens, closes in openings:
            # A day ends at the first midnight, where the clocks are set back to it an hour later.
            start_ms = self._day_ms(day, opens)
            end_ms = self._day_ms(day, closes, second=closes < DAY_MINUTES)
            # Nothing is left of hours that the clocks have skipped.
            if start_ms < end_ms:
                yield start_ms, end_ms

    def _day(self, at_ms: int) -> date:
        return local_of(at_ms, self.zone).date()

    def _day_ms(self, day: date, minute: int, *, second: bool = False) -> int:
        local = datetime.combine(day, time()) + timedelta(minutes=minute)
        return ms_of(local, self.zone, second=second)
