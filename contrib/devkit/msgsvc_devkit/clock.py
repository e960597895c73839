"""A clock that a test controls."""

from datetime import UTC, datetime

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
