"""Times as the API reads and writes them."""

import pytest

from msgsvc_core.clock import from_rfc3339, to_rfc3339

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
        ("1969-12-31T23:59:59.9999Z", -1),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140_000),
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


def test_what_we_write_is_read_back() -> None:
    assert from_rfc3339(to_rfc3339(NOON_MS + 7)) == NOON_MS + 7
