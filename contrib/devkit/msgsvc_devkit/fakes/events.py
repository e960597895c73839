"""Events recorded in a list."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgsvc_core.core_parts import CORE_EVENTS
from msgsvc_core.db import Row, Tx
from msgsvc_core.events import Event, Events
from msgsvc_core.events.contract import EventSpec, NewEvent
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.kernel.json import to_json
from msgsvc_devkit.clock import FakeClock


class FakeEvents(Events):
    """`emitted` contains the events in order, the core's and those that `specs` declare; listeners are called
    at once."""

    def __init__(self, specs: Iterable[EventSpec] = (), *, clock: Clock | None = None) -> None:
        super().__init__(
            clock=clock or FakeClock(), specs=[*CORE_EVENTS, *specs], observe=_observe_nothing
        )
        self.emitted: list[Event] = []

    async def emit_many(self, tx: Tx, new: Sequence[NewEvent]) -> list[Event]:
        now_ms = self._clock.now_ms()
        events = [self._build(one, now_ms, to_rfc3339(now_ms)) for one in new]
        self.emitted += events
        for event in events:
            for listener in self._listeners[event.name]:
                await listener(event)
        return events

    async def between(
        self,
        tx: Tx,
        project_id: str,
        names: Sequence[str] = (),
        *,
        since_ms: int,
        until_ms: int,
        after: str | None = None,
        limit: int,
    ) -> list[Event]:
        return [
            event
            for event in self.emitted
            if event.project_id == project_id
            and (not names or event.name in names)
            and since_ms <= event.occurred_at_ms <= until_ms
            and (after is None or event.event_id > after)
        ][:limit]

    async def count_by_second(self, tx: Tx, names: Sequence[str], since_ms: int) -> list[Row]:
        counted = Counter(
            (event.occurred_at_ms // 1000, event.project_id, event.data.get("channel"), event.name)
            for event in self.emitted
            if event.name in names and event.occurred_at_ms >= since_ms
        )
        columns = ("second", "project_id", "channel", "name", "count")
        return [dict(zip(columns, (*key, count), strict=True)) for key, count in counted.items()]

    async def mentioning(
        self, tx: Tx, project_id: str, text: str, *, since_ms: int, until_ms: int
    ) -> list[Event]:
        ids = earliest_id("evt", since_ms), earliest_id("evt", until_ms)
        return [
            event
            for event in self.emitted
            if event.project_id == project_id
            and ids[0] < event.event_id <= ids[1]
            and text in to_json(event.data)
        ]

    async def history(
        self, tx: Tx, project_id: str, subscriber_id: str, after: str | None, limit: int
    ) -> list[Event]:
        return [
            event
            for event in reversed(self.emitted)
            if (event.project_id, event.history_of) == (project_id, subscriber_id)
            and (after is None or event.event_id < after)
        ][:limit]

    async def count(
        self,
        tx: Tx,
        project_id: str,
        names: Sequence[str] = (),
        *,
        since_ms: int,
        until_ms: int,
        limit: int,
    ) -> int:
        return len(
            await self.between(
                tx, project_id, names, since_ms=since_ms, until_ms=until_ms, limit=limit
            )
        )

    async def start(self) -> None:
        """Listeners are called at once."""

    async def stop(self) -> None:
        """Nothing is pending."""

    @property
    def names(self) -> list[str]:
        """The names of the emitted events, in order."""
        return [event.name for event in self.emitted]


async def _observe_nothing(_tx: Tx, _events: Sequence[Event]) -> None:
    pass
