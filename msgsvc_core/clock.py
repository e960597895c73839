"""The one source of time, so that tests can move it."""

import time
from datetime import UTC, datetime
from typing import Protocol


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


def optional_rfc3339(ms: int | None) -> str | None:
    """Like `to_rfc3339`; None stays None."""
    return None if ms is None else to_rfc3339(ms)
