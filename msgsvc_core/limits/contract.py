"""The rate limiter contract and its result."""

from typing import Literal, Protocol, Self

from msgsvc_core.kernel.values import value_object

#: What happens while the shared store is unavailable: `count_locally` makes each process count by itself, so
#: that the service continues; `refuse` raises `Unavailable`, for limits against guessing. See
#: docs/decisions/0003.
WhenAway = Literal["count_locally", "refuse"]


@value_object
class Window:
    """The state of a key, for the `X-RateLimit-*` headers and `Retry-After`."""

    allowed: bool
    limit: int
    #: Requests that would still be allowed now.
    remaining: int
    #: Unix seconds at which the next slot is freed, rounded up; for an empty window, its full length from
    #: now.
    reset_at: int
    #: Seconds to wait, rounded up and at least 1; 0 when allowed.
    retry_after_s: int

    @classmethod
    def at(cls, now_ms: int, *, allowed: bool, limit: int, used: int, frees_at_ms: int) -> Self:
        """The result at `now_ms`, with `used` slots taken, the next of which is freed at `frees_at_ms`."""
        return cls(
            allowed=allowed,
            limit=limit,
            remaining=max(0, limit - used),
            reset_at=_seconds_up(frees_at_ms),
            retry_after_s=0 if allowed else max(1, _seconds_up(frees_at_ms - now_ms)),
        )


class Limiter(Protocol):
    """Allows at most `limit` hits of a key in any `window_s` seconds.

    A sliding window: each hit frees its slot exactly `window_s` after it was made. Rejected hits take no
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
        """The result that `hit` would have, without taking a slot; `remaining` counts the slot it would
        take."""
        ...

    async def open(self) -> None:
        """Connects to the store. Does not raise if it is unavailable."""
        ...

    async def close(self) -> None:
        """Closes the connections of `open`."""
        ...

    async def check(self) -> str | None:
        """Why limits can't be shared now, for an operator; None if they can."""
        ...


def check_limit(limit: int, window_s: int) -> None:
    """Raises ValueError for an invalid limit or window."""
    if limit < 1 or window_s < 1:
        raise ValueError("a limit and its window are at least 1")


def _seconds_up(ms: int) -> int:
    return -(-ms // 1000)
