"""Counts events as they are emitted, so that no page counts messages."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_dashboard.overview import store

#: The events that figures and charts show; `delivery.unknown` stands for those of `delivery.failed` in doubt.
COUNTED = frozenset(
    {
        "auth.completed",
        "broadcast.completed",
        "delivery.failed",
        "delivery.success",
        "delivery.unknown",
        "otp.sent",
        "otp.verified",
        "subscription.created",
        "subscription.deleted",
    }
)

#: Days for which counts are kept: a year, and its month before for comparison.
KEPT_DAYS = 400


_FIRST_DAY = date(1970, 1, 1)


class Counts:
    """The number of events in a project, by day in UTC."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    @property
    def today(self) -> date:
        """The day that it is in UTC."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date()

    async def count(self, tx: Tx, events: Sequence[Event]) -> None:
        """Adds those that are counted, in the transaction in which they happened."""
        found = Counter(
            (event.project_id, event.occurred_at_ms // DAY_MS, _counted_as(event))
            for event in events
            if event.name in COUNTED
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

    async def happened(self, tx: Tx, project_id: str, names: Sequence[str]) -> set[str]:
        """Those events that have ever happened."""
        return await store.happened(tx, project_id, names)

    async def fold(self, tx: Tx) -> None:
        """Makes one row of each day's counts that is over for good, and forgets those of long ago.

        An event's day is the one in which its transaction began, so yesterday's may still grow.
        """
        today = (self.today - _FIRST_DAY).days
        await store.fold(tx, today - 1)
        await store.purge(tx, today - KEPT_DAYS)


def _counted_as(event: Event) -> str:
    in_doubt = event.name == "delivery.failed" and event.data.get("status") == "unknown"
    return "delivery.unknown" if in_doubt else event.name


def last_days(today: date, days: int) -> list[date]:
    """The last days, today's last."""
    return [today - timedelta(days=back) for back in range(days - 1, -1, -1)]
