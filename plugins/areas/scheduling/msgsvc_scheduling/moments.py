"""Parsing of times with an offset, or local in a time zone."""

import re
from datetime import datetime

from msgsvc_core.kernel.clock import check_within_reach, from_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.time_zones import ms_of, zone

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
        # First, so that no offset leads beyond the ends of the calendar.
        check_within_reach(ms_of(local, zone("UTC")), now_ms)
        return ms_of(local, zone(timezone))
    return check_within_reach(from_rfc3339(text), now_ms)
