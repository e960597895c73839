"""Time that stands still until a test moves it."""

from datetime import UTC, datetime

#: Where a test's time begins unless it says otherwise.
START = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


class FakeClock:
    """A `Clock` that `advance` moves."""

    def __init__(self, start: datetime = START) -> None:
        self._ms = round(start.timestamp() * 1000)

    def time(self) -> float:
        return self._ms / 1000

    def now_ms(self) -> int:
        return self._ms

    def advance(self, seconds: float) -> None:
        """Moves time on, or back with a negative number."""
        self._ms += round(seconds * 1000)
