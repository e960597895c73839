"""The source of time, which tests can replace."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from msgsvc_core.kernel.errors import InvalidValue

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(\.\d{1,6})?\d*([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The years of all accepted times. The margin to the limits of `datetime` is for sums with durations, and for
#: local times.
FIRST_YEAR, LAST_YEAR = 1970, 2099

#: Days that the time of something planned may lie ahead: beyond them nobody knows what clocks will do.
MOST_AHEAD_DAYS = 3660

#: The limits of `datetime`, less a day, in Unix milliseconds: no time zone exceeds them.
_LEAST_MS = -62_135_510_400_000
_MOST_MS = 253_402_214_400_000


#: Durations in milliseconds.
MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


class Clock(Protocol):
    """Source of time; each `Service` owns one."""

    def time(self) -> float:
        """Unix time in seconds."""
        ...

    def now_ms(self) -> int:
        """Unix time in milliseconds, the unit of every time in the database."""
        ...

    def monotonic_ms(self) -> int:
        """Monotonic milliseconds from an arbitrary origin, for durations within this process.

        Unaffected when the machine's clock is set.
        """
        ...


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        return time.time()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def to_rfc3339(ms: int) -> str:
    """Unix milliseconds as RFC 3339 in UTC, e.g. `2026-11-20T09:30:00.125Z`."""
    moment = to_datetime(ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_datetime(ms: int) -> datetime:
    """Unix milliseconds as a `datetime`; clamped to its limits, so that a bad row can't break a page."""
    return _EPOCH + timedelta(milliseconds=min(max(ms, _LEAST_MS), _MOST_MS))


def from_rfc3339(text: str) -> int:
    """Unix milliseconds of a time with `Z` or an offset; more precise fractions are truncated.

    Raises ValueError, also for times that are not from 1970 to 2099.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InvalidValue(
            "must be a time of RFC 3339 with seconds and Z or an offset, as 2026-11-21T09:30:00Z"
        )
    day, time_of_day, fraction, offset = match.groups(default="")
    try:
        moment = datetime.fromisoformat(f"{day}T{time_of_day}{fraction}{offset.upper()}")
    except ValueError as error:
        raise InvalidValue("there is no such time: {reason}", reason=error) from None
    check_year(moment.year)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def check_year(year: int) -> None:
    """Raises ValueError for a year that is not accepted."""
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidValue(
            "must lie in the years {first} to {last}", first=FIRST_YEAR, last=LAST_YEAR
        )


def check_within_reach(ms: int, now_ms: int) -> int:
    """The time, of something that is to happen. Raises ValueError for one more than ten years from now."""
    if abs(ms - now_ms) > MOST_AHEAD_DAYS * DAY_MS:
        raise InvalidValue("must lie within ten years")
    return ms


def optional_rfc3339(ms: int | None) -> str | None:
    """Like `to_rfc3339`; None stays None."""
    return None if ms is None else to_rfc3339(ms)
