"""The key figures of a period, each beside the one of the period before it."""

from collections.abc import Sequence
from dataclasses import dataclass

#: A smaller figure is not compared with: from 1 to 30 subscribers are +2,900%, which says nothing.
LEAST_COMPARED = 10

#: Units of a tile's line of days.
WIDTH, HEIGHT = 100, 28


@dataclass(frozen=True, slots=True)
class Tile:
    """A count of events, or with `of` the share that they are of those.

    `values` and `of` are by day, the earlier half the period before. `url` is where the figure is listed.
    """

    title: str
    values: Sequence[int]
    of: Sequence[int] | None = None
    url: str = ""

    @property
    def is_share(self) -> bool:
        return self.of is not None

    @property
    def value(self) -> float | None:
        """The period's figure; None for a share of nothing."""
        return self._figure(len(self.values) // 2, len(self.values))

    @property
    def change(self) -> float | None:
        """The difference from the period before: of a count relative to it, of a share in shares. None if
        there was too little to compare with."""
        before, now = self._figure(0, len(self.values) // 2), self.value
        if before is None or now is None:
            return None
        if self.of is not None:
            counted = sum(self.of[: len(self.of) // 2])
            return now - before if counted >= LEAST_COMPARED else None
        return now / before - 1 if before >= LEAST_COMPARED else None

    @property
    def tone(self) -> str:
        """See `tone_of`."""
        return tone_of(self.change)

    @property
    def line(self) -> str:
        """The points of an SVG polyline: the period's days but today, which is not over. Empty if they have
        nothing to show."""
        half, today = len(self.values) // 2, len(self.values) - 1
        days = [self._figure(day, day + 1) for day in range(half, today)]
        # A day on which nothing was sent has no share.
        drawn = [value if self.is_share else value or 0 for value in days]
        return line_of(drawn, 1.0 if self.is_share else None)

    def _figure(self, first: int, last: int) -> float | None:
        count = sum(self.values[first:last])
        if self.of is None:
            return count
        whole = sum(self.of[first:last])
        return count / whole if whole else None


@dataclass(frozen=True, slots=True)
class Level:
    """How many there are, e.g. active subscribers. `values` are of the ends of days, the earlier half of the
    period before; 0 where none was recorded."""

    title: str
    values: Sequence[int]
    url: str = ""
    is_share: bool = False

    @property
    def value(self) -> float | None:
        """The present one; None if none was ever recorded."""
        return next((value for value in reversed(self.values) if value), None)

    @property
    def change(self) -> float | None:
        """Relative to the end of the period before; None if that is not known."""
        half = len(self.values) // 2
        before = next((value for value in reversed(self.values[:half]) if value), None)
        if before is None or before < LEAST_COMPARED or self.value is None:
            return None
        return self.value / before - 1

    @property
    def tone(self) -> str:
        """See `tone_of`."""
        return tone_of(self.change)

    @property
    def line(self) -> str:
        """The points of an SVG polyline: the period's days. Empty if there are not two."""
        days = [value or None for value in self.values[len(self.values) // 2 :]]
        return line_of(days, None) if sum(value is not None for value in days) > 1 else ""


def tone_of(change: float | None) -> str:
    """`good`, `bad`, or empty where nothing changed as shown: by half a percent."""
    if change is None or abs(change) < 0.005:
        return ""
    return "good" if change > 0 else "bad"


def line_of(values: Sequence[float | None], most: float | None) -> str:
    """The points of an SVG polyline, without those that are None; empty if nothing is above 0. `most` is the
    value at the top, by default the greatest."""
    if not any(values):
        return ""
    top = most or max(value or 0 for value in values)
    step = WIDTH / max(1, len(values) - 1)
    points = (
        (round(number * step, 1), round(2 + (HEIGHT - 4) * (1 - value / top), 1))
        for number, value in enumerate(values)
        if value is not None
    )
    return " ".join(f"{x:g},{y:g}" for x, y in points)
