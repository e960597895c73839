"""Charts: their scale and their bars."""

import doctest
from datetime import date

import pytest

from msgsvc_dashboard.overview import charts
from msgsvc_dashboard.overview.charts import BOTTOM, HEIGHT, TOP, Chart, Series

DAYS = [date(2026, 1, day) for day in (1, 2, 3)]


def test_the_examples_of_rounding_hold() -> None:
    found = doctest.testmod(charts)

    assert (found.attempted, found.failed) == (1, 0)


def test_bars_stand_upon_each_other_and_fit_below_the_top() -> None:
    series = [Series("Sent", "first", [0, 6, 10]), Series("Failed", "third", [0, 2, 10_000])]
    nothing, some, most = Chart("sends", "Messages", DAYS, series).bars

    assert nothing == []
    assert some[0].y + some[0].height == pytest.approx(HEIGHT - BOTTOM)
    assert some[1].y + some[1].height == pytest.approx(some[0].y)
    assert min(bar.height for bar in (*some, *most)) >= 1
    assert most[1].y >= TOP


def test_the_table_has_the_latest_day_first() -> None:
    chart = Chart("sends", "Messages", DAYS, [Series("Sent", "first", [1, 2, 3])])

    assert chart.rows[0] == (DAYS[2], [3])
    assert [tick.value for tick in chart.ticks] == [4, 2, 0]
