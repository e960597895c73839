"""Billing months, which start on the day of the month and at the time of the account's creation."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def period_at(anchor_ms: int, now_ms: int) -> tuple[int, int]:
    """Start and end of the month that contains `now_ms`, in Unix milliseconds.

    Counted from the account's creation and not from the previous month: after the 31st comes the 28th of
    February, and then the 31st of March.
    """
    anchor, now = _read(anchor_ms), _read(max(anchor_ms, now_ms))
    months = (now.year - anchor.year) * 12 + now.month - anchor.month
    if _later(anchor, months) > now:
        months -= 1
    return _written(_later(anchor, months)), _written(_later(anchor, months + 1))


def _later(anchor: datetime, months: int) -> datetime:
    years, month = divmod(anchor.month - 1 + months, 12)
    year = anchor.year + years
    day = min(anchor.day, monthrange(year, month + 1)[1])
    return anchor.replace(year=year, month=month + 1, day=day)


def _read(at_ms: int) -> datetime:
    return _EPOCH + at_ms * _MS


def _written(moment: datetime) -> int:
    return (moment - _EPOCH) // _MS
