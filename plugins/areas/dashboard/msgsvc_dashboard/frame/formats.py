"""Times and numbers in the reader's time zone and language; and the list of time zones."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

from babel.dates import format_date, format_datetime, format_timedelta
from babel.numbers import format_decimal, format_percent

from msgsvc_core.dashboard import PageContext
from msgsvc_core.kernel.clock import to_datetime

if TYPE_CHECKING:
    from jinja2.runtime import Context


#: Milliseconds from now within which a time is also told from now: a week.
NEAR_MS = 7 * 24 * 3600 * 1000


def moment(context: "Context", at_ms: int, page: PageContext | None = None) -> str:
    """`{{ at_ms | moment }}`: "22 Nov 2026, 14:05", "22 нояб. 2026, 14:05"."""
    reader = _reader(context, page)
    local = to_datetime(at_ms).astimezone(reader.timezone)
    return format_datetime(local, "d MMM y, HH:mm", locale=reader.lang)


def moment_in(
    context: "Context", at_ms: int, timezone: str, page: PageContext | None = None
) -> str:
    """`{{ at_ms | moment_in("Europe/Berlin") }}`: like `moment`, in that time zone."""
    local = to_datetime(at_ms).astimezone(ZoneInfo(timezone))
    return format_datetime(local, "d MMM y, HH:mm", locale=_reader(context, page).lang)


def in_full(context: "Context", at_ms: int, page: PageContext | None = None) -> str:
    """`{{ at_ms | in_full }}`: "Sunday, 22 November 2026, 14:05:09, Europe/Berlin, UTC+1"."""
    reader = _reader(context, page)
    local = to_datetime(at_ms).astimezone(reader.timezone)
    shown = format_datetime(local, "EEEE, d MMMM y, HH:mm:ss", locale=reader.lang)
    return f"{shown}, {_zone_name(local, reader.timezone)}"


def brief(context: "Context", at_ms: int, page: PageContext | None = None) -> str:
    """`{{ at_ms | brief }}`: "14:05" of today, "22 Nov, 14:05" of this year, "22 Nov 2025, 14:05"."""
    reader = _reader(context, page)
    local = to_datetime(at_ms).astimezone(reader.timezone)
    now = to_datetime(reader.clock.now_ms()).astimezone(reader.timezone)
    if local.date() == now.date():
        return format_datetime(local, "HH:mm", locale=reader.lang)
    pattern = "d MMM, HH:mm" if local.year == now.year else "d MMM y, HH:mm"
    return format_datetime(local, pattern, locale=reader.lang)


def is_near(context: "Context", at_ms: int, page: PageContext | None = None) -> bool:
    """`{% if at_ms | is_near %}`: whether it is worth saying how long ago that is."""
    return abs(at_ms - _reader(context, page).clock.now_ms()) < NEAR_MS


def zone_name(context: "Context", at_ms: int, page: PageContext | None = None) -> str:
    """`{{ at_ms | zone_name }}`: the reader's zone and what it is from UTC then, "Europe/Berlin, UTC+1"."""
    reader = _reader(context, page)
    return _zone_name(to_datetime(at_ms).astimezone(reader.timezone), reader.timezone)


def day(context: "Context", value: int | date, page: PageContext | None = None) -> str:
    """`{{ at_ms | day }}`, also of a date: "22 Nov 2026"."""
    reader = _reader(context, page)
    on = value if isinstance(value, date) else to_datetime(value).astimezone(reader.timezone).date()
    return format_date(on, "d MMM y", locale=reader.lang)


def clock(context: "Context", at_ms: int, page: PageContext | None = None) -> str:
    """`{{ at_ms | clock }}`: the time of day, "14:05"."""
    reader = _reader(context, page)
    local = to_datetime(at_ms).astimezone(reader.timezone)
    return format_datetime(local, "HH:mm", locale=reader.lang)


def ago(
    context: "Context", at_ms: int, short: bool = False, page: PageContext | None = None
) -> str:
    """`{{ at_ms | ago }}`: "3 hours ago", "in 2 days"; with `short` "3 hr. ago"."""
    reader = _reader(context, page)
    passed = timedelta(milliseconds=at_ms - reader.clock.now_ms())
    return format_timedelta(
        passed, add_direction=True, format="short" if short else "long", locale=reader.lang
    )


def number(context: "Context", value: float, page: PageContext | None = None) -> str:
    """`{{ count | number }}`: "12,500", "12 500"."""
    return format_decimal(value, locale=_reader(context, page).lang)


def percent(
    context: "Context", value: float, signed: bool = False, page: PageContext | None = None
) -> str:
    """`{{ share | percent }}`: "98.5%", "98,5 %"; with `signed` as a change: "+3.2%"."""
    shown = format_percent(value, "#,##0.#%", locale=_reader(context, page).lang)
    return f"+{shown}" if signed and value > 0 else shown


@cache
def timezones() -> Sequence[str]:
    """`{% for zone in timezones() %}`: zones of places, e.g. "Europe/Berlin", and UTC; not "EST".

    Cached, since listing them reads some hundred files.
    """
    return (*sorted(zone for zone in available_timezones() if "/" in zone), "UTC")


def _zone_name(local: datetime, timezone: ZoneInfo) -> str:
    offset = local.strftime("%z")
    hours, minutes = int(offset[:3]), offset[3:5]
    if timezone.key == "UTC":
        return timezone.key
    return f"{timezone.key}, UTC{hours:+d}" + (f":{minutes}" if minutes != "00" else "")


def _reader(context: "Context", page: PageContext | None) -> PageContext:
    found = page or context["page"]
    assert isinstance(found, PageContext)
    return found
