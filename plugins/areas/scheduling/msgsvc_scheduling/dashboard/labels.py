"""Recurrence rules in words."""

import re

from msgsvc_core.kernel.i18n import Translate
from msgsvc_scheduling.models import Record
from msgsvc_scheduling.recurrence import Rule

_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBERS = re.compile(r"\d{1,2}(,\d{1,2})*", re.ASCII)


def in_words(rule: Rule, _: Translate) -> str:
    """E.g. `Every day at 09:30`; a rule without a short name is shown as written."""
    if rule.hours == 1:
        return _("Every hour")
    if rule.days == 1:
        return _("Every day")
    if rule.hours is not None:
        return _.ngettext("Every {count} hour", "Every {count} hours", rule.hours)
    if rule.days is not None:
        return _.ngettext("Every {count} day", "Every {count} days", rule.days)
    assert rule.cron is not None, "a rule has one way of coming again"
    return _cron(rule.cron, _) or _("Cron: {cron}", cron=rule.cron)


def why_not_sent(record: Record, _: Translate) -> tuple[str, str]:
    """Why it was not sent the last time, and what was recorded of that in English, where it says more; empty
    if it was sent, or has not been due."""
    reasons = {
        "missed": _("The service was not running at the scheduled time."),
        "withdrawn": _(
            "This run was skipped when the service was restored from a backup: it may have been sent before."
        ),
        "unsubscribed": _("The subscriber has unsubscribed."),
        "blocked": _("The subscriber has blocked the bot."),
        "subscriber_not_found": _("The subscriber no longer exists."),
        "project_inactive": _("The project was disabled at the scheduled time."),
        "billing_blocked": _("The credits are used up."),
        "internal_error": _("Something went wrong on our side; the service's log has more."),
    }
    if record.reason in reasons:
        return reasons[record.reason], ""
    if record.reason is None and record.status not in {"failed", "skipped"}:
        return "", ""
    return _("The last run failed. Check the message and its recipients."), record.error or ""


def _cron(cron: str, _: Translate) -> str | None:
    minute, hour, day, month, weekday = cron.upper().split()
    if month != "*":
        return None
    if hour == "*" and (day, weekday) == ("*", "*"):
        return _within_hours(minute, _)
    times = _times(minute, hour)
    days = _days(day, weekday, _)
    if times is None or days is None:
        return None
    return _("{days} at {times}", days=days, times=times)


def _within_hours(minute: str, _: Translate) -> str | None:
    if minute == "*":
        return _("Every minute")
    if re.fullmatch(r"\*/\d{1,2}", minute, re.ASCII):
        return _.ngettext("Every {count} minute", "Every {count} minutes", int(minute[2:]))
    if minute.isdecimal():
        return _("Every hour, {minute} past", minute=f"{int(minute):02}")
    return None


def _times(minute: str, hour: str) -> str | None:
    """`09:30, 18:30`; None for what is no plain list of hours."""
    if not minute.isdecimal() or not _NUMBERS.fullmatch(hour):
        return None
    return ", ".join(f"{int(each):02}:{int(minute):02}" for each in hour.split(","))


def _days(day: str, weekday: str, _: Translate) -> str | None:
    if day == "*" and weekday == "*":
        return _("Every day")
    if day == "*":
        chosen = _weekdays(weekday)
        if chosen is None:
            return None
        if chosen == {1, 2, 3, 4, 5}:
            return _("Monday to Friday")
        names = _weekday_names(_)
        # Weeks start on Monday for most readers.
        return ", ".join(names[each] for each in sorted(chosen, key=lambda each: each or 7))
    if weekday == "*" and _NUMBERS.fullmatch(day):
        return _("On day {days} of each month", days=day.replace(",", ", "))
    return None


def _weekdays(field: str) -> set[int] | None:
    """0 is Sunday; None for what is no list of days and ranges."""
    chosen: set[int] = set()
    for part in field.split(","):
        first, _dash, last = part.partition("-")
        begin, end = _weekday(first), _weekday(last or first)
        if begin is None or end is None:
            return None
        chosen |= {each % 7 for each in range(begin, end + 1)}
    return chosen or None


def _weekday(text: str) -> int | None:
    if text in _NAMES:
        return _NAMES.index(text)
    return int(text) if re.fullmatch("[0-7]", text, re.ASCII) else None


def _weekday_names(_: Translate) -> list[str]:
    return [
        _("Sundays"),
        _("Mondays"),
        _("Tuesdays"),
        _("Wednesdays"),
        _("Thursdays"),
        _("Fridays"),
        _("Saturdays"),
    ]
