"""Times as the API reads and writes them."""

import pytest

from msgsvc_core.kernel.clock import from_rfc3339, to_rfc3339

#: 2026-01-15T12:00:00Z.
NOON_MS = 1_768_478_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-01-15T12:00:00Z", NOON_MS),
        ("2026-01-15t12:00:00z", NOON_MS),
        ("2026-01-15T15:00:00+03:00", NOON_MS),
        ("2026-01-15T12:00:00-00:00", NOON_MS),
        ("2026-01-15T12:00:00.5Z", NOON_MS + 500),
        ("2026-01-15T12:00:00.123456789Z", NOON_MS + 123),
        ("2000-01-01T00:00:00Z", 946_684_800_000),
        ("2099-12-31T23:59:59.9999Z", 4_102_444_799_999),
    ],
)
def test_a_time_with_its_offset_is_read_to_the_millisecond(text: str, ms: int) -> None:
    assert from_rfc3339(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-01-15",
        "2026-01-15T12:00:00",
        "2026-01-15 12:00:00Z",
        "2026-01-15T12:00Z",
        "2026-02-30T12:00:00Z",
        "2026-01-15T24:00:01Z",
        "2026-01-15T12:00:00+99:00",
        "2026-01-15T12:00:00Z\n",
        "٢٠٢٦-01-15T12:00:00Z",
        "1768478400",
    ],
)
def test_what_is_no_time_of_rfc_3339_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        from_rfc3339(text)


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+23:59",
        "1969-12-31T23:59:59Z",
        "2100-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_a_time_far_from_today_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must lie in the years 1970 to 2099"):
        from_rfc3339(text)


@pytest.mark.parametrize("ms", [2**63 - 1, -(2**63), 253_402_300_800_000, 2**53 * 1000])
def test_a_stored_time_beyond_the_calendar_is_written_as_its_end(ms: int) -> None:
    assert to_rfc3339(ms)[:5] == ("9999-" if ms > 0 else "0001-")


def test_what_we_write_is_read_back() -> None:
    assert from_rfc3339(to_rfc3339(NOON_MS + 7)) == NOON_MS + 7
