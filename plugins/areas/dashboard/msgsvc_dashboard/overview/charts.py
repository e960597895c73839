"""Charts as shapes for a template: stacked bars per day or hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, log10

#: Units of the drawing, in which a narrow phone's are about a pixel each.
WIDTH, HEIGHT = 360, 130
#: The part of it that the bars have: below them are the days, at their left the numbers.
LEFT, TOP, BOTTOM = 36, 8, 18

#: Least height of a bar that is more than nothing.
LEAST = 1.5


@dataclass(frozen=True, slots=True)
class Series:
    """The data of one colour; `style` is the colour's CSS class, `url` where what it counts is listed."""

    title: str
    style: str
    values: Sequence[int]
    url: str = ""

    @property
    def total(self) -> int:
        return sum(self.values)


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    style: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A grid line and its number."""

    y: float
    value: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and its accessible table. `times` are days, or the beginnings of hours in Unix milliseconds."""

    name: str
    title: str
    times: Sequence[date] | Sequence[int]
    series: Sequence[Series]

    @property
    def most(self) -> int:
        """The round number at the top."""
        sums = [sum(values) for values in zip(*(one.values for one in self.series), strict=True)]
        return rounded_up(max(sums, default=0))

    @property
    def ticks(self) -> list[Tick]:
        height = HEIGHT - TOP - BOTTOM
        highest = self.most
        middle = [Tick(TOP + height / 2, highest // 2)] if highest % 2 == 0 else []
        return [Tick(TOP, highest), *middle, Tick(TOP + height, 0)]

    @property
    def bars(self) -> list[list[Bar]]:
        """For each time the bars of its series, from the ground up."""
        step = (WIDTH - LEFT) / len(self.times)
        scale = (HEIGHT - TOP - BOTTOM) / self.most
        found: list[list[Bar]] = []
        for number in range(len(self.times)):
            ground, drawn = float(HEIGHT - BOTTOM), []
            for one in self.series:
                if value := one.values[number]:
                    height = max(value * scale, LEAST)
                    ground -= height
                    x = LEFT + number * step + step * 0.15
                    drawn.append(_bar(x, ground, step * 0.7, height, one.style))
            found.append(drawn)
        return found

    @property
    def rows(self) -> list[tuple[date | int, list[int]]]:
        """The table: each time and its values, the latest first."""
        values = [[one.values[number] for one in self.series] for number in range(len(self.times))]
        return list(reversed(list(zip(self.times, values, strict=True))))


def rounded_up(value: int) -> int:
    """The next number that reads well at the top of a chart.

    >>> [rounded_up(value) for value in (0, 3, 7, 12, 41, 230, 5001)]
    [4, 4, 8, 20, 50, 400, 8000]
    """
    if value <= 4:
        return 4
    power: int = 10 ** floor(log10(value))
    return int(next(step for step in (1, 2, 4, 5, 8, 10) if step * power >= ceil(value)) * power)


def _bar(x: float, y: float, width: float, height: float, style: str) -> Bar:
    return Bar(round(x, 2), round(y, 2), round(width, 2), round(height, 2), style)
