"""A chart of usage by day, as numbers for SVG."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime

from msgsvc_billing.models import Usage
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.values import value_object

#: Days of the chart, the width of one in units of the drawing, and its height.
DAYS, STEP, HEIGHT = 30, 20, 120


@value_object
class Bar:
    """A day: the position of its bar, and its value."""

    day: date
    credits: int
    quantity: int
    x: int
    y: float
    height: float


@value_object
class Chart:
    """`most` is the value of the highest bar."""

    bars: Sequence[Bar]
    most: int
    total: int
    width: int = DAYS * STEP
    height: int = HEIGHT


def chart_of(usage: Sequence[Usage], today: int) -> Chart:
    """A bar for each day, including those without usage."""
    spent: dict[int, int] = defaultdict(int)
    counted: dict[int, int] = defaultdict(int)
    for one in usage:
        spent[one.day] += one.credits
        counted[one.day] += one.quantity
    highest = max(spent.values(), default=0)
    bars = []
    for number, day in enumerate(range(today - DAYS + 1, today + 1)):
        # A day with any use shows, however little it is beside the others.
        height = max(2.0, HEIGHT * spent[day] / highest) if spent[day] else 0.0
        on = datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date()
        bars.append(
            Bar(
                on,
                spent[day],
                counted[day],
                number * STEP,
                round(HEIGHT - height, 1),
                round(height, 1),
            )
        )
    return Chart(bars, highest, sum(bar.credits for bar in bars))
