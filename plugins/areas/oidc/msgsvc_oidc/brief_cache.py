"""Remembers for a second what every request asks for: the client, and the issuer's project."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from msgsvc_core.kernel.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Milliseconds for which a value is taken as it was. If another process changes it, this one follows as late.
KNOWN_FOR_MS = 1000

#: Values that are remembered.
MOST_KNOWN = 10_000


class BriefCache(Generic[K, V]):
    """Values by key. What does not exist is not remembered: it may come to exist."""

    def __init__(self, clock: Clock, load: Callable[[K], Awaitable[V | None]]) -> None:
        self._clock = clock
        self._load = load
        self._known: dict[K, tuple[int, V]] = {}
        #: Increases whenever a value may have changed, so that a lookup under way is not remembered.
        self._epoch = 0

    async def get(self, key: K) -> V | None:
        """The value, as it was within the last second."""
        now_ms = self._clock.now_ms()
        known = self._known.get(key)
        if known is not None and 0 <= now_ms - known[0] < KNOWN_FOR_MS:
            return known[1]
        epoch = self._epoch
        found = await self._load(key)
        if found is not None and epoch == self._epoch:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = (now_ms, found)
        return found

    def clear(self) -> None:
        """Forgets all: this process changed a value."""
        self._known.clear()
        self._epoch += 1
