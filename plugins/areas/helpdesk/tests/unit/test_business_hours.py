"""Business hours: around changes of the clocks, and minute by minute against the clock on the wall."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.kernel.time_zones import local_of, to_ms, zone
from msgsvc_helpdesk.service_levels.business_hours import DAYS_AHEAD, BusinessHours, Openings

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

BERLIN = zone("Europe/Berlin")
OFFICE: Openings = ((9 * 60, 18 * 60),)
#: Monday to Friday, nine to six.
WORKDAYS = BusinessHours(
    zone=BERLIN, weekly=dict.fromkeys(range(5), OFFICE), holidays=frozenset({date(2026, 12, 25)})
)

#: Where clocks change at night, at midnight, by half an hour, never, and where a day was left out.
CHANGES = [
    ("Europe/Berlin", date(2026, 3, 28)),
    ("Europe/Berlin", date(2026, 10, 24)),
    ("America/New_York", date(2026, 10, 31)),
    ("America/Havana", date(2026, 3, 7)),
    ("America/Havana", date(2026, 10, 31)),
    ("Africa/Cairo", date(2026, 4, 23)),
    ("Africa/Cairo", date(2026, 10, 29)),
    ("Australia/Lord_Howe", date(2026, 4, 4)),
    ("Australia/Lord_Howe", date(2026, 10, 3)),
    ("Pacific/Apia", date(2011, 12, 29)),
    ("Asia/Kolkata", date(2026, 5, 1)),
]


def at(text: str, name: str = "Europe/Berlin") -> int:
    return to_ms(datetime.fromisoformat(text).replace(tzinfo=zone(name)))


@pytest.mark.parametrize(
    ("moment", "hours", "expected"),
    [
        ("2026-11-27T17:00", 2, "2026-11-30T10:00"),  # over a weekend
        ("2026-11-27T17:00", 1, "2026-11-27T18:00"),  # to the minute of closing
        ("2026-11-28T03:00", 1, "2026-11-30T10:00"),  # from a closed day
        ("2026-12-24T17:00", 2, "2026-12-28T10:00"),  # over a holiday and a weekend
        ("2026-03-27T17:00", 3, "2026-03-30T11:00"),  # over the change to summer time
        ("2026-10-23T17:00", 3, "2026-10-26T11:00"),  # and back
        ("2026-11-27T12:00", 45, "2026-12-04T12:00"),  # a working week
    ],
)
def test_time_that_is_open_is_added(moment: str, hours: int, expected: str) -> None:
    assert WORKDAYS.add(at(moment), hours * HOUR_MS) == at(expected)


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-28", 24), ("2026-03-29", 23), ("2026-10-25", 25)]
)
def test_a_day_around_the_clock_has_the_hours_that_pass(day: str, hours: int) -> None:
    always = BusinessHours(zone=BERLIN, weekly={})
    start = at(f"{day}T00:00")

    assert always.end_of_day(start) - start == hours * HOUR_MS
    assert always.between(start, always.end_of_day(start)) == hours * HOUR_MS
    assert always.add(start, 100 * DAY_MS) == start + 100 * DAY_MS


@pytest.mark.parametrize(
    ("day", "hours"),
    [
        ("2026-03-28", 2),
        # 02:00 to 03:00 are left out, and 02:00 to 02:59 come twice.
        ("2026-03-29", 1),
        ("2026-10-25", 3),
    ],
)
def test_night_hours_lose_and_gain_what_the_clocks_do(day: str, hours: int) -> None:
    nights = BusinessHours(zone=BERLIN, weekly=dict.fromkeys(range(7), ((60, 180),)))
    start = at(f"{day}T00:00")

    assert nights.between(start, nights.end_of_day(start)) == hours * HOUR_MS


def test_hours_that_the_clocks_skip_are_no_opening() -> None:
    skipped = BusinessHours(zone=BERLIN, weekly={6: ((120, 180),)})

    assert skipped.next_opening(at("2026-03-29T00:00")) == at("2026-04-05T02:00")


def test_the_next_opening_is_now_while_it_is_open() -> None:
    friday, evening = at("2026-11-27T12:34"), at("2026-11-27T18:00")

    assert WORKDAYS.is_open(friday)
    assert WORKDAYS.next_opening(friday) == friday
    assert not WORKDAYS.is_open(evening)
    assert WORKDAYS.next_opening(evening) == at("2026-11-30T09:00")


def test_a_day_ends_at_the_first_of_two_midnights() -> None:
    saturdays = BusinessHours(zone=zone("America/Havana"), weekly={5: ((0, 1440),)})

    # On Sunday at 1:00 the clocks are set back to midnight.
    begins = to_ms(datetime(2026, 10, 31, 4, tzinfo=UTC))
    assert saturdays.between(begins - DAY_MS, begins + 3 * DAY_MS) == DAY_MS


def test_a_desk_that_never_opens_ends_the_search() -> None:
    start = at("2026-11-27T12:00")
    days = frozenset(
        date(2026, 11, 1) + timedelta(days=number) for number in range(DAYS_AHEAD + 60)
    )
    never = BusinessHours(zone=BERLIN, weekly={0: OFFICE}, holidays=days)

    assert never.next_opening(start) is None
    assert not never.is_open(start)
    assert never.add(start, HOUR_MS) == at("2029-08-23T00:00")


def test_a_minute_a_week_is_added_up_to_a_bound() -> None:
    rare = BusinessHours(zone=BERLIN, weekly={0: ((600, 601),)})
    start = at("2026-11-27T12:00")

    assert rare.add(start, 2 * MINUTE_MS) == at("2026-12-07T10:01")
    assert rare.add(start, 30 * DAY_MS) == at("2029-08-23T00:00")


@st.composite
def days(draw: st.DrawFn) -> Openings:
    """Up to three openings of a day, apart from each other."""
    edges = sorted(draw(st.sets(st.integers(0, 48), max_size=6)))
    edges = edges[: len(edges) // 2 * 2]
    return tuple((edges[i] * 30, edges[i + 1] * 30) for i in range(0, len(edges), 2))


@st.composite
def desks(draw: st.DrawFn) -> tuple[BusinessHours, int]:
    """Hours, and a moment close to a change of the clocks."""
    name, begins = draw(st.sampled_from(CHANGES))
    weekly = {weekday: draw(days()) for weekday in range(7)} if draw(st.booleans()) else {}
    offsets = draw(st.sets(st.integers(0, 4), max_size=2))
    holidays = frozenset(begins + timedelta(days=offset) for offset in offsets)
    desk = BusinessHours(zone=zone(name), weekly=weekly, holidays=holidays)
    return desk, to_ms(datetime.combine(begins, time(), UTC)) + draw(
        st.integers(0, 3000)
    ) * MINUTE_MS


def open_minutes(desk: BusinessHours, from_ms: int, to_ms_: int) -> list[int]:
    """The minutes at which it is open: of each day from the first at which the clock on the wall has reached
    an opening to the last before its closing."""
    walls: dict[date, list[tuple[int, int]]] = {}
    for moment in range(from_ms - 2 * DAY_MS, to_ms_ + 2 * DAY_MS, MINUTE_MS):
        wall = local_of(moment, desk.zone)
        walls.setdefault(wall.date(), []).append((moment, wall.hour * 60 + wall.minute))
    found: set[int] = set()
    for day, minutes in walls.items():
        usual = desk.weekly.get(day.weekday(), ()) if desk.weekly else ((0, 1440),)
        for opens, closes in () if day in desk.holidays else usual:
            after = [moment for moment, minute in minutes if minute >= opens]
            before = [moment for moment, minute in minutes if minute < closes]
            if after and before:
                found |= set(range(min(after), max(before) + 1, MINUTE_MS))
    return sorted(moment for moment in found if from_ms <= moment < to_ms_)


@settings(max_examples=40, deadline=None)
@given(desks(), st.integers(0, 4000))
def test_it_agrees_with_the_clock_on_the_wall(desk: tuple[BusinessHours, int], most: int) -> None:
    hours, start = desk
    end = start + 4 * DAY_MS
    minutes = open_minutes(hours, start, end)

    assert hours.between(start, end) == len(minutes) * MINUTE_MS
    assert hours.is_open(start) == (start in minutes)
    if minutes:
        assert hours.next_opening(start) == minutes[0]
        wanted = min(most, len(minutes) - 1)
        expected = minutes[wanted - 1] + MINUTE_MS if wanted else start
        assert hours.add(start, wanted * MINUTE_MS) == expected


@settings(max_examples=200, deadline=None)
@given(desks(), st.integers(0, DAY_MS), st.integers(0, DAY_MS))
def test_what_is_added_is_what_lies_between(
    desk: tuple[BusinessHours, int], one_ms: int, other_ms: int
) -> None:
    hours, start = desk
    if hours.next_opening(start) is None:
        return
    middle = hours.add(start, one_ms)

    assert middle >= start
    assert hours.between(start, middle) == one_ms
    assert hours.add(middle, other_ms) == hours.add(start, one_ms + other_ms)
    assert hours.between(middle, start) == 0
