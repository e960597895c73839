"""Counts events as they are emitted, so that no page counts messages."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from msgsvc_core.dashboard import Pages
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_dashboard.overview import store

#: Stored beside the events: how many subscribers a project had at the end of a day.
ACTIVE = "subscribers.active"

#: Days for which counts are kept: a year, and its month before for comparison.
KEPT_DAYS = 400

#: Days before today whose counts are still by hour: the last 24 hours, and the 24 before them.
HOURLY_DAYS = 2

_FIRST_DAY = date(1970, 1, 1)


class Counts:
    """The number of events in a project, by day in UTC and by hour. `shown` finds the areas whose charts,
    tiles and first steps say what is counted."""

    def __init__(self, *, clock: Clock, shown: Callable[[], Iterable[Pages]]) -> None:
        self._clock = clock
        self._find_shown = shown

    @cached_property
    def names(self) -> frozenset[str]:
        """The events that are counted; `delivery.unknown` stands for those of `delivery.failed` in doubt."""
        areas = list(self._find_shown())
        charts = {one.event for area in areas for chart in area.charts for one in chart.series}
        tiles = {name for area in areas for tile in area.tiles for name in (tile.event, tile.of)}
        steps = {step.event for area in areas for step in area.first_steps}
        return frozenset(charts | steps | {name for name in tiles if name is not None})

    @property
    def today(self) -> date:
        """The day that it is in UTC."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date()

    @property
    def _hour(self) -> int:
        return self._clock.now_ms() // HOUR_MS

    async def count(self, tx: Tx, events: Sequence[Event]) -> None:
        """Adds those that are counted, in the transaction in which they happened."""
        found = Counter(
            (event.project_id, event.occurred_at_ms // HOUR_MS, name)
            for event in events
            if (name := _counted_as(event)) in self.names
        )
        if found:
            await store.add(tx, found)

    async def by_day(
        self, tx: Tx, project_id: str, names: Sequence[str], days: int
    ) -> dict[str, list[int]]:
        """For each event its counts of the last `days` days, today's last."""
        last = (self.today - _FIRST_DAY).days
        first = last - days + 1
        found = await store.by_day(tx, project_id, names, first)
        return {
            name: [found.get((day, name), 0) for day in range(first, last + 1)] for name in names
        }

    async def by_hour(
        self, tx: Tx, project_id: str, names: Sequence[str], hours: int
    ) -> dict[str, list[int]]:
        """For each event its counts of the last `hours` hours, at most 48; the present hour's last."""
        first = self._hour - hours + 1
        found = await store.by_hour(tx, project_id, names, first)
        return {
            name: [found.get((hour, name), 0) for hour in range(first, self._hour + 1)]
            for name in names
        }

    def last_hours(self, hours: int) -> list[int]:
        """When the last hours began, in Unix milliseconds; the present one last."""
        return [(self._hour - back) * HOUR_MS for back in range(hours - 1, -1, -1)]

    async def happened(self, tx: Tx, project_id: str, names: Sequence[str]) -> set[str]:
        """Those events that have ever happened."""
        return await store.happened(tx, project_id, names)

    async def record_active(self, tx: Tx, active: Mapping[str, int]) -> None:
        """Notes how many active subscribers projects have; the last of a day stands."""
        await store.put(tx, (self.today - _FIRST_DAY).days, ACTIVE, active)

    async def fold(self, tx: Tx) -> None:
        """Makes one row of the hours of each day that no page shows by hour, and deletes those of long ago.

        An event's hour is the one in which its transaction began, so the last one may still grow.
        """
        today = (self.today - _FIRST_DAY).days
        await store.fold(tx, today - HOURLY_DAYS)
        await store.purge(tx, today - KEPT_DAYS)


def _counted_as(event: Event) -> str:
    """The name under which an event is counted. A skipped message is not counted: nobody tried to deliver
    it."""
    if event.name != "delivery.failed":
        return event.name
    return {"unknown": "delivery.unknown", "skipped": "delivery.skipped"}.get(
        str(event.data.get("status")), event.name
    )


def last_days(today: date, days: int) -> list[date]:
    """The last days, today's last."""
    return [today - timedelta(days=back) for back in range(days - 1, -1, -1)]
