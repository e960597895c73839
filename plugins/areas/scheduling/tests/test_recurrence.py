"""When a rule comes again, over days on which clocks change and over quiet hours."""

from dataclasses import replace
from itertools import pairwise

import pytest

from msgsvc_core.kernel.clock import from_rfc3339, to_rfc3339
from msgsvc_scheduling.recurrence import HOUR_MS, Rule, check_cron

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def ms(text: str) -> int:
    return from_rfc3339(f"{text}:00Z")


def runs(rule: Rule, after: str, count: int) -> list[str]:
    """The next `count` runs after that moment, in UTC, to the minute."""
    found: list[str] = []
    moment: int | None = ms(after)
    while len(found) < count and (moment := rule.next_after(moment or 0)) is not None:
        found.append(to_rfc3339(moment)[:16])
    return found


def rule(cron: str | None = None, timezone: str = "UTC", **fields: object) -> Rule:
    made = Rule(timezone=timezone, anchor_ms=ms("2026-01-15T12:00"), cron=cron)
    return replace(made, **fields)


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("30 9 * * *", "2026-01-15T12:00", ["2026-01-16T09:30", "2026-01-17T09:30"]),
        ("0 12 * * *", "2026-01-15T12:00", ["2026-01-16T12:00", "2026-01-17T12:00"]),
        ("*/20 * * * *", "2026-01-15T23:30", ["2026-01-15T23:40", "2026-01-16T00:00"]),
        ("0 9 * * MON-FRI", "2026-01-16T10:00", ["2026-01-19T09:00", "2026-01-20T09:00"]),
        ("0 0 31 * *", "2026-01-31T00:00", ["2026-03-31T00:00", "2026-05-31T00:00"]),
        ("0 0 29 2 *", "2026-01-15T12:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 8 * * MON#1", "2026-01-15T12:00", ["2026-02-02T08:00", "2026-03-02T08:00"]),
        ("0 8 L * *", "2026-01-15T12:00", ["2026-01-31T08:00", "2026-02-28T08:00"]),
    ],
)
def test_cron(cron: str, after: str, expected: list[str]) -> None:
    assert runs(rule(check_cron(cron)), after, 2) == expected


@pytest.mark.parametrize(
    "cron",
    [
        *("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *"),
        *(
            "* * * * 8",
            "@daily",
            "*/0 * * * *",
            "5-1 * * * *",
            "0 0 31 4 *",
            "٣ * * * *",
            "a b c d e",
        ),
    ],
)
def test_what_is_no_cron_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_cron(cron)


@pytest.mark.parametrize(
    ("cron", "timezone", "after", "expected"),
    [
        # Missing: once, at the next minute that there is, together with what is due then anyway.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        (
            "0,15,30,45 2,3 * * *",
            BERLIN,
            "2026-03-29T00:59",
            ["2026-03-29T01:00", "2026-03-29T01:15"],
        ),
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00", ["2026-03-08T07:00", "2026-03-09T06:30"]),
        ("*/30 * * * *", BERLIN, "2026-03-29T00:30", ["2026-03-29T01:00", "2026-03-29T01:30"]),
        # Twice: once, the first time.
        ("30 2 * * *", BERLIN, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31T12:00", ["2026-11-01T05:30", "2026-11-02T06:30"]),
        ("*/30 * * * *", BERLIN, "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-25T02:00"]),
        # Made between the two.
        ("15,45 2 * * *", BERLIN, "2026-10-25T01:20", ["2026-10-26T01:15", "2026-10-26T01:45"]),
    ],
)
def test_cron_when_clocks_change(cron: str, timezone: str, after: str, expected: list[str]) -> None:
    assert runs(rule(cron, timezone), after, 2) == expected


def test_hours_are_counted_as_they_pass() -> None:
    every = rule(timezone=BERLIN, hours=12, anchor_ms=ms("2026-03-28T06:00"))

    assert runs(every, "2026-03-28T06:00", 3) == [
        "2026-03-28T18:00",
        "2026-03-29T06:00",
        "2026-03-29T18:00",
    ]


@pytest.mark.parametrize(
    ("timezone", "anchor", "expected"),
    [
        (BERLIN, "2026-03-27T01:30", ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]),
        (BERLIN, "2026-10-23T00:30", ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"]),
        (
            NEW_YORK,
            "2026-10-31T05:30",
            ["2026-11-01T05:30", "2026-11-02T06:30", "2026-11-03T06:30"],
        ),
    ],
)
def test_days_keep_their_local_time(timezone: str, anchor: str, expected: list[str]) -> None:
    every = rule(timezone=timezone, days=1, anchor_ms=ms(anchor))

    assert runs(every, anchor, 3) == expected


def test_first_run_may_be_at_the_start_itself_and_the_last_at_the_end() -> None:
    begin, end = ms("2026-02-01T00:00"), ms("2026-02-03T00:00")
    daily = rule(days=1, anchor_ms=begin, starts_at_ms=begin, ends_at_ms=end)
    by_cron = rule("0 0 * * *", starts_at_ms=begin, ends_at_ms=end)

    expected = ["2026-02-01T00:00", "2026-02-02T00:00", "2026-02-03T00:00"]
    assert runs(daily, "2026-01-15T12:00", 9) == expected
    assert runs(by_cron, "2026-01-15T12:00", 9) == expected


@pytest.mark.parametrize(
    ("quiet", "cron", "expected"),
    [
        # What falls into them comes once, when they end.
        (
            ("22:00", "08:00"),
            "0 */3 * * *",
            ["15T15:00", "15T18:00", "15T21:00", "16T08:00", "16T09:00"],
        ),
        (("12:30", "14:15"), "0 13,14,15 * * *", ["15T14:15", "15T15:00", "16T14:15"]),
        # The end itself is not quiet, the beginning is.
        (("13:00", "14:00"), "0 13,14 * * *", ["15T14:00", "16T14:00"]),
        (("00:00", "23:59"), "0 * * * *", ["15T23:59", "16T23:59"]),
    ],
)
def test_quiet_hours(quiet: tuple[str, str], cron: str, expected: list[str]) -> None:
    shy = rule(cron, quiet_from=quiet[0], quiet_to=quiet[1])

    assert runs(shy, "2026-01-15T12:00", len(expected)) == [f"2026-01-{one}" for one in expected]


@pytest.mark.parametrize(
    "shy",
    [
        rule("30 12 * * *", quiet_from="10:00", quiet_to="14:00"),
        rule("0 23,3,7,9 * * 1-5", BERLIN, quiet_from="22:00", quiet_to="08:00"),
        rule(timezone=NEW_YORK, hours=5, quiet_from="01:30", quiet_to="09:10"),
        rule(timezone=BERLIN, days=2, quiet_from="00:00", quiet_to="23:59"),
        rule("*/20 * * * *", "Australia/Lord_Howe", quiet_from="01:00", quiet_to="05:00"),
    ],
    ids=["noon", "night", "hours", "days", "often"],
)
def test_from_whenever_it_is_asked_the_next_run_is_the_same(shy: Rule) -> None:
    """Also from within the quiet hours that have put it off."""
    begin = ms("2026-03-27T00:00")
    made = replace(shy, anchor_ms=begin)
    expected = made.upcoming(begin, 100)

    for before, run in pairwise([begin, *expected]):
        asked = {before + (run - before) * part // 7 for part in range(7)}
        assert {made.next_after(moment) for moment in asked} == {run}


def test_what_would_have_been_put_off_before_it_was_made_does_not_come() -> None:
    daily = rule("30 12 * * *", quiet_from="10:00", quiet_to="14:00")
    every = rule(hours=4, quiet_from="10:00", quiet_to="14:00")
    made = ms("2026-01-15T13:00")
    started = replace(daily, starts_at_ms=made, anchor_ms=made)

    assert runs(replace(daily, anchor_ms=made), "2026-01-15T13:00", 1) == ["2026-01-16T14:00"]
    assert runs(started, "2026-01-15T13:30", 1) == ["2026-01-16T14:00"]
    assert runs(replace(every, anchor_ms=made), "2026-01-15T13:00", 1) == ["2026-01-15T17:00"]


def test_quiet_hours_are_local_and_end_once_when_clocks_change() -> None:
    shy = rule("0 1 * * *", BERLIN, quiet_from="00:00", quiet_to="02:30")
    late = rule(timezone=BERLIN, hours=1, quiet_from="02:00", quiet_to="02:30")

    assert runs(shy, "2026-03-28T12:00", 2) == ["2026-03-29T01:00", "2026-03-30T00:30"]
    assert runs(shy, "2026-10-24T12:00", 2) == ["2026-10-25T00:30", "2026-10-26T01:30"]
    # Two o'clock comes twice, and each time half an hour of quiet.
    assert runs(late, "2026-10-24T23:00", 4) == [
        "2026-10-25T00:30",
        "2026-10-25T01:30",
        "2026-10-25T02:00",
        "2026-10-25T03:00",
    ]


@pytest.mark.parametrize("timezone", [BERLIN, NEW_YORK, "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_runs_of_two_years_never_go_back_and_come_every_local_day(timezone: str) -> None:
    daily = rule("30 2 * * *", timezone)
    moments = [daily.next_after(ms("2026-01-15T12:00"))]
    while len(moments) < 730:
        moments.append(daily.next_after(moments[-1] or 0))

    gaps = {(second or 0) - (first or 0) for first, second in pairwise(moments)}

    assert min(gaps) >= 23 * HOUR_MS
    assert max(gaps) <= 25.5 * HOUR_MS
