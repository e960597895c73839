"""Parsing of times with an offset, or local in a time zone."""

import re
from datetime import datetime, timedelta

from msgsvc_core.kernel.clock import DAY_MS, from_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.time_zones import local_of, ms_of, zone

#: Days that a time may lie ahead, or back: beyond them nobody knows what clocks will do.
MOST_AHEAD_DAYS = 3660

_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2})?", re.ASCII)


def read_moment(text: str, timezone: str | None, now_ms: int) -> int:
    """The time as Unix milliseconds. Raises ValueError."""
    if _LOCAL.fullmatch(text):
        if timezone is None:
            raise InvalidValue("a time without offset needs timezone")
        try:
            local = datetime.fromisoformat(text.upper())
        except ValueError as error:
            raise InvalidValue("there is no such time: {reason}", reason=error) from None
        # Far from the ends of the calendar, so that no offset leads beyond them.
        if abs(local - local_of(now_ms, zone("UTC"))) > timedelta(days=MOST_AHEAD_DAYS):
            raise _too_far()
        return ms_of(local, zone(timezone))
    ms = from_rfc3339(text)
    if abs(ms - now_ms) > MOST_AHEAD_DAYS * DAY_MS:
        raise _too_far()
    return ms


def _too_far() -> InvalidValue:
    return InvalidValue("must lie within ten years")
