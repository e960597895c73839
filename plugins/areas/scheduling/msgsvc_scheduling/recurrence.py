"""Runs of a recurring message: by cron or interval, in local time, outside quiet hours."""

import re
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.time_zones import local_of, ms_of, zone
from msgsvc_core.kernel.values import value_object

#: What the five fields may be written with; the library would take a field of seconds too.
_CRON = re.compile(r"[0-9A-Za-z*/,#-]+( [0-9A-Za-z*/,#-]+){4}", re.ASCII)


@value_object
class Rule:
    """A recurrence, of which either `cron` or one of `hours` and `days` is given.

    Intervals are counted from `anchor_ms`: hours as they pass, days by the local calendar.
    `quiet_from` and `quiet_to` are local times of the day, `HH:MM`.
    """

    timezone: str
    anchor_ms: int
    cron: str | None = None
    hours: int | None = None
    days: int | None = None
    starts_at_ms: int | None = None
    ends_at_ms: int | None = None
    quiet_from: str | None = None
    quiet_to: str | None = None

    def next_after(self, after_ms: int, *, done_ms: int | None = None) -> int | None:
        """The first run after that time; None if there is none.

        During quiet hours that is a run they have delayed, if it was due since the rule was created, and
        after `done_ms`: otherwise changing the quiet hours would delay a sent run again.
        """
        since_ms = self.anchor_ms
        if self.starts_at_ms is not None and self.starts_at_ms >= self.anchor_ms:
            since_ms = self.starts_at_ms - 1
        after_ms = max(after_ms, since_ms)
        begin_ms = max(self._asleep_since(after_ms) - 1, since_ms, done_ms or since_ms)
        for moment_ms in self._moments(begin_ms, zone(self.timezone)):
            run_ms = self.awake(moment_ms)
            if moment_ms > begin_ms and run_ms > after_ms:
                return None if self.ends_at_ms is not None and run_ms > self.ends_at_ms else run_ms
        return None

    def upcoming(self, after_ms: int, most: int) -> list[int]:
        """Up to `most` runs after that time, in order."""
        runs: list[int] = []
        while len(runs) < most and (next_ms := self.next_after(after_ms)) is not None:
            runs.append(next_ms)
            after_ms = next_ms
        return runs

    def awake(self, ms: int) -> int:
        """The same moment, or the end of the quiet hours that it falls into."""
        quiet = self._quiet_hours(ms)
        if quiet is None:
            return ms
        ends, timezone = quiet[1], zone(self.timezone)
        first = ms_of(ends, timezone)
        # As clocks go back, the end may come twice, and once have been already.
        return first if first >= ms else ms_of(ends, timezone, second=True)

    def _asleep_since(self, ms: int) -> int:
        """The same time, or the start of the quiet hours it falls into."""
        quiet = self._quiet_hours(ms)
        return ms if quiet is None else ms_of(quiet[0], zone(self.timezone))

    def _quiet_hours(self, ms: int) -> tuple[datetime, datetime] | None:
        """Start and end of the quiet hours that a time falls into, in local time."""
        if self.quiet_from is None or self.quiet_to is None:
            return None
        local = local_of(ms, zone(self.timezone))
        begin, end = time.fromisoformat(self.quiet_from), time.fromisoformat(self.quiet_to)
        over_midnight = begin > end
        past_begin, before_end = local.time() >= begin, local.time() < end
        if not (past_begin or before_end if over_midnight else past_begin and before_end):
            return None
        first_day = local.date() - timedelta(days=int(over_midnight and not past_begin))
        last_day = first_day + timedelta(days=int(over_midnight))
        return datetime.combine(first_day, begin), datetime.combine(last_day, end)

    def _moments(self, after_ms: int, timezone: ZoneInfo) -> Iterator[int]:
        """Without quiet hours, from shortly before `after_ms` on, never going back."""
        if self.cron is not None:
            for local in CronSim(self.cron, local_of(after_ms, timezone)):
                yield ms_of(local, timezone)
        elif self.hours is not None:
            step_ms = self.hours * HOUR_MS
            moment_ms = self.anchor_ms + max(0, (after_ms - self.anchor_ms) // step_ms) * step_ms
            while True:
                yield moment_ms
                moment_ms += step_ms
        else:
            assert self.days is not None, "a rule has one way of coming again"
            step, begin = timedelta(days=self.days), local_of(self.anchor_ms, timezone)
            count = max(0, (local_of(after_ms, timezone) - begin) // step - 1)
            while True:
                yield ms_of(begin + count * step, timezone)
                count += 1


def check_cron(cron: str) -> str:
    """The expression with single spaces. Raises ValueError unless it is a cron expression of five fields."""
    cron = " ".join(cron.split())
    if not _CRON.fullmatch(cron):
        raise InvalidValue("must have five fields: minute, hour, day of month, month, day of week")
    try:
        CronSim(cron, datetime(2026, 1, 1))  # noqa: DTZ001 - local times have no zone here
    except CronSimError as error:
        raise InvalidValue(f"{error}".lower()) from None
    return cron
