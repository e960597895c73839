"""Clocks that a test controls."""

from datetime import UTC, datetime

from msgsvc_core.kernel.clock import SystemClock

#: Default start time of a test.
START = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


class FakeClock:
    """A `Clock` that `advance` moves forward, and `set_by` sets."""

    def __init__(self, start: datetime = START) -> None:
        self._ms = round(start.timestamp() * 1000)
        self._passed_ms = 0

    def time(self) -> float:
        return self._ms / 1000

    def now_ms(self) -> int:
        return self._ms

    def monotonic_ms(self) -> int:
        return self._passed_ms

    def advance(self, seconds: float) -> None:
        """Moves the time forward."""
        assert seconds >= 0, "time passes one way; set_by sets the clock"
        self._ms += round(seconds * 1000)
        self._passed_ms += round(seconds * 1000)

    def set_by(self, seconds: float) -> None:
        """Sets the wall clock forward, or back with a negative number, without moving the monotonic time."""
        self._ms += round(seconds * 1000)


class MovableClock:
    """A `Clock` that runs as the machine's does, and that `advance` moves ahead of it. It begins `ahead_s`
    seconds ahead; with a negative number behind."""

    def __init__(self, ahead_s: float = 0) -> None:
        self._system = SystemClock()
        self._ahead_ms = round(ahead_s * 1000)

    @property
    def ahead_s(self) -> float:
        """Seconds by which it is ahead of the machine's clock."""
        return self._ahead_ms / 1000

    def time(self) -> float:
        return self._system.time() + self._ahead_ms / 1000

    def now_ms(self) -> int:
        return self._system.now_ms() + self._ahead_ms

    def monotonic_ms(self) -> int:
        return self._system.monotonic_ms() + self._ahead_ms

    def advance(self, seconds: float) -> None:
        """Moves the time forward."""
        assert seconds >= 0, "time passes one way"
        self._ahead_ms += round(seconds * 1000)
