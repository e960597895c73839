"""Injected faults: rate limits, errors, and lost responses."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_devkit.platforms.matrix.refusals import Refused, too_many, unavailable

#: How a call fails after it had its effect: `lost` closes the connection, `gateway` answers with a timeout,
#: `garbage` with what is no JSON, `hang` does not answer.
Break = Literal["lost", "gateway", "garbage", "hang"]

#: Calls that a bot makes on the way to another one; faults that are ordered are for the other one.
LOOKUPS = frozenset({"joined_members", "membership", "state", "event", "relations"})


@dataclass(slots=True)
class Faults:
    """Settings of faults. Rates are shares of all calls, from 0 to 1; `seed` makes them reproducible."""

    #: Messages in a row, and seconds until there is one more; None: no limit. Synapse begins with 10 and 5.
    burst: int | None = None
    refill_s: float = 5.0
    rate_429: float = 0.0
    rate_5xx: float = 0.0
    rate_lost: float = 0.0
    retry_after_s: float | None = 0.05
    seed: int = 1
    _ordered: deque[Refused | Break] = field(default_factory=deque)
    _of_name: dict[str, Refused] = field(default_factory=dict)
    _random: random.Random | None = None
    _spent: float = 0.0
    _spent_at: float = 0.0

    def fail_next(self, refused: Refused, times: int = 1) -> None:
        """Refuses the next calls with this error."""
        self._ordered.extend([refused] * times)

    def at(self, name: str, refused: Refused) -> None:
        """Refuses the next call of that name, e.g. `join`."""
        self._of_name[name] = refused

    def break_next(self, how: Break) -> None:
        """Breaks the next call."""
        self._ordered.append(how)

    def of_call(self, name: str) -> Break | None:
        """The fault of the call, or None. Raises `Refused`."""
        if name in self._of_name:
            raise self._of_name.pop(name)
        if name not in LOOKUPS and self._ordered:
            fault = self._ordered.popleft()
            if isinstance(fault, Refused):
                raise fault
            return fault
        if self._chance(self.rate_429):
            raise too_many(self.retry_after_s)
        if self._chance(self.rate_5xx):
            raise unavailable()
        return "lost" if self._chance(self.rate_lost) else None

    def of_message(self, now: float) -> None:
        """Counts a message. Raises `Refused` beyond the limit."""
        if self.burst is None:
            return
        spent = max(0.0, self._spent - (now - self._spent_at) / self.refill_s)
        if spent + 1 > self.burst:
            raise too_many(round((spent + 1 - self.burst) * self.refill_s, 3))
        self._spent, self._spent_at = spent + 1, now

    def _chance(self, rate: float) -> bool:
        if self._random is None:
            self._random = random.Random(self.seed)  # noqa: S311 - faults, no secrets
        return rate > 0 and self._random.random() < rate
