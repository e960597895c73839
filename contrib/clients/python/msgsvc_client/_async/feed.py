"""The project's events, one after another, oldest first, from where the last run ended."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from typing import Protocol

from msgsvc_client._async.calls import AsyncCaller, Call
from msgsvc_client._async.pages import AsyncPaginator
from msgsvc_client._failures import ApiError, TransportError
from msgsvc_client.cursors import MAX_SEEN, OVERLAP_MS, FileCursor, Position
from msgsvc_client.events import AnyEvent, event_from_data
from msgsvc_client.pages import Page

#: Seconds between two writes of the cursor while events are handled, at least.
SAVE_EVERY_S = 1.0

#: Seconds between two calls while the service is away, at first and at most.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0

PAGE_SIZE = 100

_log = logging.getLogger("msgsvc_client")


class AsyncCursorStore(Protocol):
    """Keeps one text: what `save` was called with last."""

    async def load(self) -> str | None:
        """None if nothing was saved yet."""
        ...

    async def save(self, cursor: str) -> None:
        """Called at most once a second while events are handled, when all were, and when the loop is left.
        The text has some 30 bytes for each event of the last minute, and 30 kB at most."""
        ...


class AsyncFileCursorStore:
    """The cursor in a file, for one process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = FileCursor(path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._file}>"

    async def load(self) -> str | None:
        return self._file.read()

    async def save(self, cursor: str) -> None:
        self._file.write(cursor)


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
    ) -> AsyncGenerator[AnyEvent, None]:
        """Yields events, oldest first, and waits for further ones.

            async for event in client.events.follow(AsyncFileCursorStore("events.cursor")):
                handle(event)

        Each event comes at least once. The cursor is saved a second after it was saved last, when all events
        were handled, and when the loop is left; an event counts as handled when the next one is asked for.
        After a crash the events of the last second come again: `event.event_id` tells. A loop of `async for`
        that is left is closed by `contextlib.aclosing`, else only when the event loop comes to it.

        While the service is away, or limits requests, it keeps trying, with pauses of up to 30 seconds, and
        logs each as a warning of `msgsvc_client`. What doesn't pass ends it with its exception, as a key that
        was revoked.

        `event` selects those of one name. `from_beginning`: the first run starts with the oldest event that
        the service still has, instead of those to come. `until_idle`: ends instead of waiting.

        Raises ValueError if what the store holds is not a cursor.
        """
        clock = self._caller.clock
        position = await self._start(cursor, event, from_beginning)
        saved_at = seen_at = clock.monotonic()
        is_saved = True
        try:
            while True:
                if clock.monotonic() - seen_at >= OVERLAP_MS / 1000:
                    position.settle_all()
                after: str | None = position.after
                while after is not None:
                    page = await self._page(event, after_event_id=after)
                    for item in page.data:
                        if item.event_id in position:
                            continue
                        yield item
                        position.add(item.event_id, item.occurred_at)
                        is_saved = False
                        seen_at = clock.monotonic()
                        if seen_at - saved_at >= SAVE_EVERY_S:
                            position.settle()
                            await cursor.save(str(position))
                            saved_at, is_saved = seen_at, True
                    after = page.data[-1].event_id if page.next_cursor and page.data else None
                position.settle()
                if not is_saved:
                    await cursor.save(str(position))
                    saved_at, is_saved = clock.monotonic(), True
                if until_idle:
                    return
                await clock.sleep(poll_interval_s)
        finally:
            if not is_saved:
                position.settle()
                await cursor.save(str(position))

    async def _start(
        self, cursor: AsyncCursorStore, event: str | None, from_beginning: bool
    ) -> Position:
        saved = await cursor.load()
        if saved is not None:
            try:
                return Position.parse(saved)
            except ValueError as error:
                message = f"{cursor!r} holds no cursor; mend it, or delete it to begin anew"
                raise ValueError(message) from error
        position = Position()
        if not from_beginning:
            # The last minute counts as seen, and is looked at again: what is committed late is yet to come.
            page = await self._page(event)
            _add_all(position, page)
            while page.next_cursor and position.is_within_overlap and len(position) < MAX_SEEN:
                page = await self._page(event, cursor=page.next_cursor)
                _add_all(position, page)
            if page.next_cursor:
                position.begin_at_oldest()
            position.settle()
        await cursor.save(str(position))
        return position

    async def _page(self, event: str | None, **query: str) -> Page[AnyEvent]:
        """A page of the feed, whenever the service is there."""
        call = Call("GET", "/v1/events", query={"limit": PAGE_SIZE, "event": event, **query})
        paginator = AsyncPaginator(self._caller, call, event_from_data)
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await paginator.first_page()
            except (ApiError, TransportError) as error:
                if isinstance(error, ApiError) and not error.retryable:
                    raise
                asked_s = (error.retry_after_s or 0.0) if isinstance(error, ApiError) else 0.0
                wait_s = max(asked_s, pause_s)
                _log.warning("events can't be read, next try in %.0f s: %s", wait_s, error)
            await self._caller.clock.sleep(wait_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def _add_all(position: Position, page: Page[AnyEvent]) -> None:
    for item in page.data:
        position.add(item.event_id, item.occurred_at)
