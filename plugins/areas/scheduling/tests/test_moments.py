"""Which moment a time stands for. Clocks change in Berlin on 2026-03-29 and 2026-10-25 at 01:00Z, in New
York on 2026-03-08 at 07:00Z and 2026-11-01 at 06:00Z."""

import pytest

from msgsvc_core.kernel.clock import from_rfc3339, to_rfc3339
from msgsvc_core.kernel.time_zones import local_of, zone
from msgsvc_scheduling.moments import read_moment

NOW_MS = from_rfc3339("2026-01-15T12:00:00Z")
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


@pytest.mark.parametrize(
    ("text", "timezone", "moment"),
    [
        ("2026-01-15T13:00:00Z", None, "2026-01-15T13:00:00.000Z"),
        ("2026-01-15T13:00:00.250+02:00", None, "2026-01-15T11:00:00.250Z"),
        # An offset says it all; a time zone beside it changes nothing.
        ("2026-01-15T13:00:00-05:00", BERLIN, "2026-01-15T18:00:00.000Z"),
        ("2026-07-01T09:30", BERLIN, "2026-07-01T07:30:00.000Z"),
        ("2026-12-01T09:30:15", BERLIN, "2026-12-01T08:30:15.000Z"),
        ("2026-07-01T09:30", "Asia/Kathmandu", "2026-07-01T03:45:00.000Z"),
        ("2026-07-01T09:30", "UTC", "2026-07-01T09:30:00.000Z"),
        # Missing: the next minute that there is.
        ("2026-03-29T01:59", BERLIN, "2026-03-29T00:59:00.000Z"),
        ("2026-03-29T02:00", BERLIN, "2026-03-29T01:00:00.000Z"),
        ("2026-03-29T02:30:30", BERLIN, "2026-03-29T01:00:00.000Z"),
        ("2026-03-29T03:00", BERLIN, "2026-03-29T01:00:00.000Z"),
        ("2026-03-08T02:30", NEW_YORK, "2026-03-08T07:00:00.000Z"),
        # Twice: the first.
        ("2026-10-25T01:59", BERLIN, "2026-10-24T23:59:00.000Z"),
        ("2026-10-25T02:30", BERLIN, "2026-10-25T00:30:00.000Z"),
        ("2026-10-25T03:00", BERLIN, "2026-10-25T02:00:00.000Z"),
        ("2026-11-01T01:30", NEW_YORK, "2026-11-01T05:30:00.000Z"),
    ],
)
def test_moment_of_a_time(text: str, timezone: str | None, moment: str) -> None:
    assert to_rfc3339(read_moment(text, timezone, NOW_MS)) == moment


def test_day_that_an_island_left_out_is_the_next_one() -> None:
    near_ms = from_rfc3339("2011-12-01T00:00:00Z")

    missing_ms = read_moment("2011-12-30T12:00", "Pacific/Apia", near_ms)

    assert local_of(missing_ms, zone("Pacific/Apia")).isoformat() == "2011-12-31T00:00:00"
