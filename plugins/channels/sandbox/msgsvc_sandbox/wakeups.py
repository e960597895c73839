"""Notifies waiting pages of changes for their person."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Wakeups:
    """Notifies pages of this process only; those of other processes poll every second."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def expect(self, person_id: str) -> Iterator[asyncio.Event]:
        """An event that is set at the next change.

        Enter it before reading the state: a change between the reading and the waiting would
        otherwise go unnoticed.
        """
        event = asyncio.Event()
        waiting = self._waiting.setdefault(person_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(person_id) is waiting:
                del self._waiting[person_id]

    def ring(self, person_id: str) -> None:
        """Wakes all pages waiting for this person. Call it after the commit."""
        for event in self._waiting.get(person_id, ()):
            event.set()

    def ring_all(self) -> None:
        """Wakes every page, for what concerns all of them."""
        for waiting in self._waiting.values():
            for event in waiting:
                event.set()
