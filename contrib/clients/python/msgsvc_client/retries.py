"""When a failed request is sent again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

#: Draws a number between two others; tests give their own.
Uniform = Callable[[float, float], float]

#: Seconds that are added to a `Retry-After`, at most.
MAX_SPREAD_S = 1.0


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long a call is tried.

    A wait doubles from `base_s` to `max_wait_s`. It is drawn anew between half of that and all of it, so that
    clients that failed together don't return together, and yet a service has time to start again: the waits
    of a call add up to 12 to 23 seconds. If the service sends `Retry-After`, the wait is never shorter.
    """

    #: Including the first; 1 never repeats.
    max_attempts: int = 7
    #: Seconds within which attempts begin. A wait that would end later is not begun: the call fails.
    deadline_s: float = 60.0
    base_s: float = 0.5
    max_wait_s: float = 8.0
    uniform: Uniform = random.uniform

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or self.deadline_s <= 0 or self.base_s < 0 or self.max_wait_s < 0:
            raise ValueError("max_attempts must be at least 1, deadline_s more than 0")

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Seconds to wait after this attempt, which counts from 1."""
        longest = min(self.max_wait_s, self.base_s * 2.0 ** min(attempt - 1, 30))
        if retry_after_s is None:
            return self.uniform(longest / 2, longest)
        # Those who were told the same second still come one after another.
        return retry_after_s + self.uniform(0.0, min(longest, MAX_SPREAD_S))


#: No repeats: for a caller that has a queue of its own.
NO_RETRIES = RetryPolicy(max_attempts=1)
