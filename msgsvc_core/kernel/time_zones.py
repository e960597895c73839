"""Conversion between local times and Unix time.

A local time that does not exist, when clocks go forward, is moved to the next existing minute. One that
occurs twice, when clocks go back, means the first (decision 0075).
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from msgsvc_core.kernel.clock import to_datetime
from msgsvc_core.kernel.errors import InvalidValue

#: Maximum characters of the name of a time zone.
ZONE_LENGTH = 64

_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]{1,31}(/[A-Za-z0-9_+-]{1,31}){0,2}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


def zone(name: str) -> ZoneInfo:
    """The time zone of an IANA name, e.g. `Europe/Berlin`. Raises ValueError."""
    try:
        # Other names may be files of the machine, or zones that differ between machines. `Factory` is no
        # zone.
        if _ZONE.fullmatch(name) and name != "Factory":
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidValue("there is no such time zone; give its IANA name, as Europe/Berlin")


def _check_zone(name: str) -> str:
    zone(name)
    return name


#: The IANA name of a time zone, in a body.
Zone = Annotated[str, Field(max_length=ZONE_LENGTH), AfterValidator(_check_zone)]


def to_ms(moment: datetime) -> int:
    """Unix milliseconds of an aware `datetime`."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def local_of(ms: int, timezone: ZoneInfo) -> datetime:
    """The local time in the time zone, as a naive `datetime`."""
    return to_datetime(ms).astimezone(timezone).replace(tzinfo=None, fold=0)


def ms_of(local: datetime, timezone: ZoneInfo, *, second: bool = False) -> int:
    """The Unix milliseconds of a local time; `second` selects the later of two."""
    while True:
        moment = local.replace(tzinfo=timezone, fold=int(second)).astimezone(UTC)
        if moment.astimezone(timezone).replace(tzinfo=None) == local:
            return to_ms(moment)
        local = local.replace(second=0, microsecond=0) + _MINUTE
