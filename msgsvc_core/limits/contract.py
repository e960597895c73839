"""The rate limiter contract and its result."""

from typing import Literal, Protocol, Self

from msgsvc_core.kernel.values import value_object

#: What happens to a hit while the store that processes share is away: `count_locally` lets each
#: process count alone, so that the service goes on; `refuse` raises `Unavailable`, for limits that
#: stop guessing. See docs/decisions/0003.
WhenAway = Literal["count_locally", "refuse"]


@value_object
class Window:
    """Where a key stands; what the `X-RateLimit-*` headers and `Retry-After` are made of."""

    allowed: bool
    limit: int
    #: Requests that would still be allowed now.
    remaining: int
    #: Unix seconds at which the next slot frees, rounded up; of an empty window, its full length
    #: from now.
    reset_at: int
    #: Seconds to wait, rounded up and at least 1; 0 when allowed.
    retry_after_s: int

    @classmethod
    def at(cls, now_ms: int, *, allowed: bool, limit: int, used: int, frees_at_ms: int) -> Self:
        """The answer at `now_ms`, with `used` slots taken, of which one frees at `frees_at_ms`."""
        return cls(
            allowed=allowed,
            limit=limit,
            remaining=max(0, limit - used),
            reset_at=_seconds_up(frees_at_ms),
            retry_after_s=0 if allowed else max(1, _seconds_up(frees_at_ms - now_ms)),
        )


class Limiter(Protocol):
    """Allows at most `limit` hits of a key in any `window_s` seconds.

    A sliding window: each hit frees its slot exactly `window_s` after it was made. Refused hits take no
    slot, so a client that keeps retrying is not locked out for longer. The same key with another `window_s`
    is a separate counter. ValueError for a limit or window below 1.

    `when_away` defaults to the strict behaviour.
    """

    async def hit(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        """Takes a slot if one is free, as one atomic step. May raise `Unavailable`."""
        ...

    async def peek(
        self, key: str, limit: int, window_s: int, *, when_away: WhenAway = "refuse"
    ) -> Window:
        """What `hit` would say, taking nothing; `remaining` counts the slot it would take."""
        ...

    async def open(self) -> None:
        """Connects to what it counts in. That being away is no reason to raise."""
        ...

    async def close(self) -> None:
        """Closes what `open` opened."""
        ...

    async def check(self) -> str | None:
        """Why limits can't be shared right now, for an operator; None if all is well."""
        ...


def check_limit(limit: int, window_s: int) -> None:
    """Raises ValueError for a limit or window that no limiter can keep."""
    if limit < 1 or window_s < 1:
        raise ValueError("a limit and its window are at least 1")


def _seconds_up(ms: int) -> int:
    return -(-ms // 1000)
