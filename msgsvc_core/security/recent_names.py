"""A set of names with expiry."""

from collections.abc import Callable

#: Maximum number of names remembered, some 2 MB.
MOST = 10_000


class RecentNames:
    """Names added in the last `for_s` seconds; the oldest is dropped if there are too many.

    `now` is a monotonic clock, in seconds.
    """

    def __init__(self, for_s: float, now: Callable[[], float]) -> None:
        self._for_s = for_s
        self._now = now
        #: The expiry of each name, the oldest first.
        self._until_s: dict[str, float] = {}

    def add(self, name: str) -> None:
        """Adds the name, or renews it."""
        self.discard(name)
        if len(self._until_s) >= MOST:
            del self._until_s[next(iter(self._until_s))]
        self._until_s[name] = self._now() + self._for_s

    def discard(self, name: str) -> None:
        """Removes the name, if present."""
        self._until_s.pop(name, None)

    def __contains__(self, name: str) -> bool:
        until_s = self._until_s.get(name)
        return until_s is not None and self._now() < until_s
