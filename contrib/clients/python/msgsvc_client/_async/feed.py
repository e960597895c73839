"""The project's events, one after another, oldest first, from where the last run ended."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from msgsvc_client._async.calls import AsyncCaller, Call
from msgsvc_client._async.pages import AsyncPaginator
from msgsvc_client.cursors import FileCursor
from msgsvc_client.events import AnyEvent, event_from_data

#: How far back each look goes over what was seen already: an event gets its id before its transaction is
#: committed, so that it may become visible after a younger one.
OVERLAP = timedelta(seconds=60)

#: Events remembered within that time, at most.
MOST_REMEMBERED = 1000


class AsyncCursorStore(Protocol):
    """Keeps one text: what `save` was called with last."""

    async def load(self) -> str | None:
        """None if nothing was saved yet."""
        ...

    async def save(self, cursor: str) -> None: ...


class AsyncFileCursorStore:
    """The cursor in a file, for one process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = FileCursor(path)

    async def load(self) -> str | None:
        return self._file.read()

    async def save(self, cursor: str) -> None:
        self._file.write(cursor)


@dataclass
class _Position:
    """The events handled last, by id, with their times."""

    seen: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> _Position:
        return cls(dict(json.loads(text)["seen"]))

    def __str__(self) -> str:
        return json.dumps({"seen": self.seen}, separators=(",", ":"))

    @property
    def after(self) -> str:
        """The event from which the next look begins; empty before the first."""
        return min(self.seen, key=lambda event_id: self.seen[event_id], default="")

    def add(self, event_id: str, occurred_at: str) -> None:
        self.seen[event_id] = occurred_at
        by_time = sorted(self.seen.items(), key=lambda item: item[1])
        start = _earlier(by_time[-1][1])
        older = sum(at < start for _, at in by_time)
        # The next look begins after the last one that is older.
        self.seen = dict(by_time[max(older - 1, 0) :][-MOST_REMEMBERED:])


def _earlier(moment: str) -> str:
    at = datetime.fromisoformat(moment.replace("Z", "+00:00")) - OVERLAP
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class AsyncEventFeed:
    """What `client.events` has beside the API's own methods."""

    _caller: AsyncCaller

    async def follow(
        self,
        cursor: AsyncCursorStore,
        *,
        event: str | None = None,
        poll_interval_s: float = 5.0,
        from_beginning: bool = False,
        until_idle: bool = False,
    ) -> AsyncIterator[AnyEvent]:
        """Yields events, oldest first, and waits for further ones.

            async for event in client.events.follow(AsyncFileCursorStore("events.cursor")):
                handle(event)

        The cursor is saved when the next event is asked for, that is, after the last one was handled. An
        event whose handling was interrupted comes again: `event.event_id` tells.

        `event` selects those of one name. `from_beginning`: the first run starts with the oldest event that
        the service still has, instead of those to come. `until_idle`: ends instead of waiting.
        """
        saved = await cursor.load()
        position = _Position() if saved is None else _Position.parse(saved)
        if saved is None and not from_beginning:
            for item in (await self._list(event, None).first_page()).data:
                position.add(item.event_id, item.occurred_at)
            await cursor.save(str(position))
        while True:
            async for item in self._list(event, position.after):
                if item.event_id in position.seen:
                    continue
                yield item
                position.add(item.event_id, item.occurred_at)
                await cursor.save(str(position))
            if until_idle:
                return
            await self._caller.clock.sleep(poll_interval_s)

    def _list(self, event: str | None, after: str | None) -> AsyncPaginator[AnyEvent]:
        query = {"limit": 100, "event": event, "after_event_id": after}
        return AsyncPaginator(self._caller, Call("GET", "/v1/events", query=query), event_from_data)
