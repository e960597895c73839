"""The hours of a route's step: whether it is within them, and when they begin next."""

from datetime import datetime, time, timedelta

from msgsvc_core.kernel.time_zones import local_of, ms_of, zone
from msgsvc_core.routing.models import RouteHours

#: Days after which an opening is found: a clock that goes forward can leave one day without its hours.
_DAYS = 3


def is_within(hours: RouteHours, now_ms: int) -> bool:
    """Whether the local time is within the hours, which may go past midnight."""
    local = local_of(now_ms, zone(hours.timezone))
    minute, begins, ends = local.hour * 60 + local.minute, _minute(hours.from_), _minute(hours.to)
    if begins < ends:
        return begins <= minute < ends
    return minute >= begins or minute < ends


def next_opening_ms(hours: RouteHours, now_ms: int) -> int:
    """When the hours begin next; `now_ms` within them."""
    if is_within(hours, now_ms):
        return now_ms
    timezone = zone(hours.timezone)
    today = local_of(now_ms, timezone).date()
    opens = time.fromisoformat(hours.from_)
    for days in range(_DAYS):
        local = datetime.combine(today + timedelta(days=days), opens)
        # Where clocks go back it comes twice, and its first one may be over.
        for second in (False, True):
            begins_ms = ms_of(local, timezone, second=second)
            if begins_ms > now_ms and is_within(hours, begins_ms):
                return begins_ms
    raise AssertionError("hours begin once a day")


def _minute(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)
