"""Local times: what the clock on the wall shows, and which moment that is.

A local time that is missing, as clocks go forward, stands for the next minute that there is; one that
comes twice, as they go back, for the first of the two (API, "Scheduling and drip").
"""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgsvc_core.clock import from_rfc3339

#: Days that a time may lie ahead, or back: beyond them nobody knows what clocks will do.
MOST_AHEAD_DAYS = 3660

_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]{1,31}(/[A-Za-z0-9_+-]{1,31}){0,2}", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2})?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


def zone(name: str) -> ZoneInfo:
    """The time zone of an IANA name, e.g. `Europe/Berlin`. Raises ValueError."""
    try:
        # Other names may be files of the machine.
        if _ZONE.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ValueError("there is no such time zone; give its IANA name, as Europe/Berlin")


def to_ms(moment: datetime) -> int:
    """Unix milliseconds of a moment."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def local_of(ms: int, timezone: ZoneInfo) -> datetime:
    """What the clock shows then, without the time zone."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.astimezone(timezone).replace(tzinfo=None, fold=0)


def ms_of(local: datetime, timezone: ZoneInfo, *, second: bool = False) -> int:
    """The moment at which the clock shows `local`; `second` is for the later of two."""
    while True:
        moment = local.replace(tzinfo=timezone, fold=int(second)).astimezone(UTC)
        if moment.astimezone(timezone).replace(tzinfo=None) == local:
            return to_ms(moment)
        local = local.replace(second=0, microsecond=0) + _MINUTE


def read_moment(text: str, timezone: str | None, now_ms: int) -> int:
    """The moment of a time with an offset, or of a local one in `timezone`. Raises ValueError."""
    if _LOCAL.fullmatch(text):
        if timezone is None:
            raise ValueError("a time without offset needs timezone")
        try:
            local = datetime.fromisoformat(text.upper())
        except ValueError as error:
            raise ValueError(f"there is no such time: {error}") from None
        # Far from the ends of the calendar, so that no offset leads beyond them.
        if abs(local - local_of(now_ms, zone("UTC"))) > timedelta(days=MOST_AHEAD_DAYS):
            raise _too_far()
        return ms_of(local, zone(timezone))
    ms = from_rfc3339(text)
    if abs(ms - now_ms) > MOST_AHEAD_DAYS * 24 * 3600 * 1000:
        raise _too_far()
    return ms


def _too_far() -> ValueError:
    return ValueError("must lie within ten years")
