"""The one source of time, so that tests can move it."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(\.\d{1,6})?\d*([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Tells the time; a `Service` owns one."""

    def time(self) -> float:
        """Unix time in seconds."""
        ...

    def now_ms(self) -> int:
        """Unix time in milliseconds, the unit of every time in the database."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that only grow, from any beginning, for durations within this process.

        Somebody may set the machine's clock meanwhile; these don't notice.
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
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_rfc3339(text: str) -> int:
    """Unix milliseconds of a time with `Z` or an offset; finer parts are cut off. Raises ValueError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(
            "must be a time of RFC 3339 with seconds and Z or an offset, as 2026-11-21T09:30:00Z"
        )
    day, time_of_day, fraction, offset = match.groups(default="")
    try:
        moment = datetime.fromisoformat(f"{day}T{time_of_day}{fraction}{offset.upper()}")
    except ValueError as error:
        raise ValueError(f"there is no such time: {error}") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def optional_rfc3339(ms: int | None) -> str | None:
    """Like `to_rfc3339`; None stays None."""
    return None if ms is None else to_rfc3339(ms)
