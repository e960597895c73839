"""The key figures of a period, each beside the one of the period before it."""

from collections.abc import Sequence
from dataclasses import dataclass

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
        there is nothing to compare with."""
        before, now = self._figure(0, len(self.values) // 2), self.value
        if before is None or now is None:
            return None
        if self.is_share:
            return now - before
        return now / before - 1 if before else None

    @property
    def tone(self) -> str:
        """`good`, `bad`, or empty where nothing changed as shown: by half a percent."""
        if self.change is None or abs(self.change) < 0.005:
            return ""
        return "good" if self.change > 0 else "bad"

    @property
    def line(self) -> str:
        """The points of an SVG polyline: the period's days but today, which is not over. Empty if they have
        nothing to show."""
        half, today = len(self.values) // 2, len(self.values) - 1
        days = [self._figure(day, day + 1) for day in range(half, today)]
        drawn = [value or 0 for value in days]
        most = 1.0 if self.is_share else max(drawn, default=0)
        if not any(drawn):
            return ""
        step = WIDTH / max(1, len(drawn) - 1)
        points = (
            (round(number * step, 1), round(2 + (HEIGHT - 4) * (1 - value / most), 1))
            for number, value in enumerate(drawn)
            # A day on which nothing was sent has no share.
            if not self.is_share or days[number] is not None
        )
        return " ".join(f"{x:g},{y:g}" for x, y in points)

    def _figure(self, first: int, last: int) -> float | None:
        count = sum(self.values[first:last])
        if self.of is None:
            return count
        whole = sum(self.of[first:last])
        return count / whole if whole else None
