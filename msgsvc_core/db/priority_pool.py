"""A pool whose waiting tasks have priorities: interactive work before that in the background."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityPool(Generic[T]):
    """Connections that one task uses at a time, given to waiting tasks in order of arrival.

    Tasks that somebody waits for, such as requests, go before those in the background, such as jobs; but
    while both wait they alternate, so neither waits for all of the other's.
    """

    def __init__(self) -> None:
        self._free: deque[T] = deque()
        self._interactive: deque[asyncio.Future[T]] = deque()
        self._background: deque[asyncio.Future[T]] = deque()
        #: Whether the last one for which both waited went to an interactive task.
        self._background_is_next = False

    def take(self) -> T | None:
        """One that is free, or None."""
        return self._free.popleft() if self._free else None

    async def wait(self, *, background: bool = False) -> T:
        """One, as soon as it is free and this task is the next."""
        if self._free:
            return self._free.popleft()
        granted: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        (self._background if background else self._interactive).append(granted)
        try:
            return await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                # It was given the item, and can't use it.
                self.put(granted.result())
            raise

    def put(self, item: T) -> None:
        """Gives it back, for the next task."""
        while granted := self._next():
            if not granted.done():
                granted.set_result(item)
                return
        self._free.append(item)

    def _next(self) -> asyncio.Future[T] | None:
        both_wait = self._interactive and self._background
        if self._interactive and not (both_wait and self._background_is_next):
            self._background_is_next = bool(both_wait)
            return self._interactive.popleft()
        self._background_is_next = False
        return self._background.popleft() if self._background else None
