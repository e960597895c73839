"""Wakes requests that wait for a session to change."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Changes:
    """Knows of this process only. For changes made elsewhere, whoever waits looks again by itself."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def watch(self, session_id: str) -> Iterator[asyncio.Event]:
        """An event that is set at every change from now on.

        Begin to watch before reading the session: what happens between the reading and the waiting
        would go unnoticed otherwise.
        """
        changed = asyncio.Event()
        self._waiting[session_id].add(changed)
        try:
            yield changed
        finally:
            self._waiting[session_id].discard(changed)
            if not self._waiting[session_id]:
                del self._waiting[session_id]

    def tell(self, session_id: str) -> None:
        """Wakes everybody who watches the session. Call it after the commit."""
        for changed in self._waiting.get(session_id, ()):
            changed.set()
