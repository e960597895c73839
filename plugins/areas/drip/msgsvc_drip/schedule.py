"""When a step is due: its delay, and its time of day."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.kernel.time_zones import local_of, ms_of
from msgsvc_drip.definition import DripDefinition, Step


def due_after(definition: DripDefinition, step: Step, at_ms: int, day_ms: int | None = None) -> int:
    """When a step is due that follows an event at `at_ms`; Unix milliseconds.

    A delay of days with a time of day counts calendar days, from the day of `day_ms`: the first such time
    that is not before `at_ms`. Any other is the delay, followed by the next such time of day.
    """
    delay = step.delay
    if step.at_local_time is None:
        return at_ms + delay.total_ms
    zone, at = ZoneInfo(definition.timezone), time.fromisoformat(step.at_local_time)
    if delay.days is None:
        return _first_from(at_ms + delay.total_ms, at, zone)
    day = local_of(at_ms if day_ms is None else day_ms, zone).date() + timedelta(days=delay.days)
    return _first_from(at_ms, at, zone, day)


def is_time(definition: DripDefinition, step: Step, now_ms: int, late_minutes: int) -> int | None:
    """None if a due step may be sent now; else the next occurrence of its time of day.

    It may be up to `late_minutes` late: a step planned for ten in the morning is not sent at night.
    """
    if step.at_local_time is None:
        return None
    zone, at = ZoneInfo(definition.timezone), time.fromisoformat(step.at_local_time)
    earliest_ms = _first_from(now_ms - late_minutes * MINUTE_MS, at, zone)
    return None if earliest_ms <= now_ms else earliest_ms


def _first_from(ms: int, at: time, zone: ZoneInfo, day: date | None = None) -> int:
    """The first moment of that time of day which is not before `ms`, nor before `day`."""
    # The day before: a change of the clocks may carry its time over midnight.
    day = day or local_of(ms, zone).date() - timedelta(days=1)
    while (found_ms := ms_of(datetime.combine(day, at), zone)) < ms:
        day += timedelta(days=1)
    return found_ms
