"""Emits events: a row in the feed, every plugin's `on_events`, then in-process listeners."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import structlog

from msgsvc_core.db import Row, Tx
from msgsvc_core.events import store
from msgsvc_core.events.contract import Event, EventSpec, EventSubject, Listener, NewEvent
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.hooks import unique_by_name
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.ids import earliest_id, new_id
from msgsvc_core.kernel.tracing import current_traceparent

#: Seconds at shutdown for listeners to process committed events.
STOP_S = 10.0

log = structlog.get_logger(__name__)


#: Called with events in the transaction that emits them; an exception rolls back their cause.
Observer = Callable[[Tx, Sequence[Event]], Awaitable[None]]

#: Called after the commit with pairs of an event's name and the channel of its subscriber, or "".
Count = Callable[[Sequence[tuple[str, str]]], None]


def _count_nothing(_committed: Sequence[tuple[str, str]]) -> None:
    pass


def _none_unloaded() -> dict[str, str]:
    return {}


class Events:
    """The events of one service; `service.events`.

    `specs` declare the events that may be emitted, `observe` is awaited with each batch in its transaction.
    `find_unloaded` returns the events of plugins that are installed but not loaded, with the plugin's name.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        specs: Iterable[EventSpec],
        observe: Observer,
        count: Count = _count_nothing,
        find_unloaded: Callable[[], dict[str, str]] = _none_unloaded,
    ) -> None:
        self._clock = clock
        self._observe = observe
        self._count = count
        self._find_unloaded = find_unloaded
        self.catalogue = unique_by_name("event", specs)
        self._listeners: dict[str, list[Listener]] = defaultdict(list)
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None

    @cached_property
    def unloaded(self) -> dict[str, str]:
        """Events of installed plugins that are not loaded: the plugin's name by the event's."""
        return self._find_unloaded()

    def title(self, _: Translate, event: Event) -> str:
        """What the subscriber's history calls it; the name of one whose plugin is no longer loaded."""
        spec = self.catalogue.get(event.name)
        return event.name if spec is None else spec.titled(_, event.data)

    def detail(self, _: Translate, event: Event) -> str | None:
        """What the subscriber's history shows below its title; None if its owner does not declare that."""
        spec = self.catalogue.get(event.name)
        return None if spec is None else spec.detailed(_, event.data)

    def listen(self, name: str, listener: Listener) -> None:
        """Calls `listener` with every event of that name, after its commit, in this process."""
        if name not in self.catalogue:
            raise ValueError(f"no event is named {name!r}; known: {', '.join(self.catalogue)}")
        self._listeners[name].append(listener)

    async def emit(
        self,
        tx: Tx,
        project_id: str,
        name: str,
        fields: Mapping[str, Any],
        *,
        subscriber: EventSubject | None = None,
    ) -> Event:
        """Records an event in `tx`; it is emitted if, and only if, `tx` commits.

        `fields` are those of the event's `EventSpec`; the time and the subscriber's fields are added.
        """
        [event] = await self.emit_many(tx, [NewEvent(project_id, name, fields, subscriber)])
        return event

    async def emit_many(self, tx: Tx, new: Sequence[NewEvent]) -> list[Event]:
        """Like `emit`, for many events: one statement for all rows, and one call per plugin."""
        if not new:
            return []
        now_ms = self._clock.now_ms()
        occurred_at = to_rfc3339(now_ms)
        events = [self._build(one, now_ms, occurred_at) for one in new]
        await store.insert_many(tx, events)
        await self._observe(tx, events)
        happened = [(one.name, one.subscriber.bot if one.subscriber else "") for one in new]
        tx.on_commit(lambda: self._count(happened))
        heard = [event for event in events if self._listeners[event.name]]
        if heard:
            tx.on_commit(lambda: self._queue_for_listeners(heard))
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
        """A project's events in a period, both ends included, oldest first; an empty `names` means all.

        `after` is the id of the last event of the previous page, times are Unix milliseconds.
        """
        return await store.between(
            tx, project_id, names, since_ms=since_ms, until_ms=until_ms, after=after, limit=limit
        )

    async def count_by_second(self, tx: Tx, names: Sequence[str], since_ms: int) -> list[Row]:
        """How many events of these names happened in all projects since a time: `second`, `project_id`,
        `channel`, `name` and `count`."""
        return await store.count_by_second(tx, names, since_ms)

    async def mentioning(
        self, tx: Tx, project_id: str, text: str, *, since_ms: int, until_ms: int
    ) -> list[Event]:
        """A project's events whose payload contains a text, by the time at which their ids were made: both in
        Unix milliseconds."""
        ids = earliest_id("evt", since_ms), earliest_id("evt", until_ms)
        return await store.mentioning(tx, project_id, text, *ids)

    async def history(
        self, tx: Tx, project_id: str, subscriber_id: str, after: str | None, limit: int
    ) -> list[Event]:
        """A subscriber's events, newest first, from before the event `after`. Outcomes of messages are not
        included."""
        return await store.history(tx, project_id, subscriber_id, after, limit)

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
        """Number of events that `between` would return, counted up to `limit`."""
        return await store.count(
            tx, project_id, names, since_ms=since_ms, until_ms=until_ms, limit=limit
        )

    def _build(self, new: NewEvent, now_ms: int, occurred_at: str) -> Event:
        spec = self.catalogue[new.name]
        data: dict[str, Any] = {"occurred_at": occurred_at}
        if new.subscriber is not None:
            data.update(new.subscriber.event_fields())
        data.update(spec.fields.model_validate(dict(new.fields)).to_data())
        history_of = data.get("subscriber_id") if spec.in_history else None
        traceparent = new.traceparent or current_traceparent()
        return Event(new_id("evt"), new.project_id, new.name, data, now_ms, history_of, traceparent)

    def _queue_for_listeners(self, events: Iterable[Event]) -> None:
        for event in events:
            self._queue.put_nowait(event)

    async def start(self) -> None:
        self._worker = asyncio.create_task(self._call_listeners(), name="event listeners")

    async def stop(self) -> None:
        """Stops after events committed so far have been passed to listeners."""
        if self._worker is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._queue.join()
        await cancel_and_wait(self._worker)
        self._worker = None

    async def _call_listeners(self) -> None:
        while True:
            event = await self._queue.get()
            for listener in self._listeners[event.name]:
                try:
                    await listener(event)
                except Exception:
                    log.exception("listener_failed", event_name=event.name, id=event.event_id)
            self._queue.task_done()
