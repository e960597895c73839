"""Injected faults: rate limits, errors, and lost responses."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_devkit.platforms.max.refusals import Refused, too_many, unavailable

#: How a call fails: `reset` closes the connection before the call has an effect. With all others it has its
#: effect; then `lost` closes the connection, `gateway` responds with a timeout, `garbage` responds with
#: invalid JSON, `hang` doesn't respond.
Break = Literal["reset", "lost", "gateway", "garbage", "hang"]

#: Requests per second and bot, and messages per second and chat (dev.max.ru).
PER_BOT_S, PER_CHAT_S = 30, 2


@dataclass(slots=True)
class Faults:
    """Settings of faults. Rates are shares of all calls, from 0 to 1; `seed` makes them reproducible."""

    #: None: no limit.
    per_bot_s: int | None = PER_BOT_S
    per_chat_s: int | None = PER_CHAT_S
    #: `Retry-After` of a 429; the schema does not guarantee the header.
    retry_after_s: float | None = None
    rate_429: float = 0.0
    rate_5xx: float = 0.0
    rate_reset: float = 0.0
    seed: int = 1
    _ordered: deque[Refused | Break] = field(default_factory=deque)
    _windows: dict[str, deque[float]] = field(default_factory=dict)
    _random: random.Random | None = None

    def fail_next(self, refused: Refused, times: int = 1) -> None:
        """Rejects the next calls with this error."""
        self._ordered.extend([refused] * times)

    def break_next(self, how: Break) -> None:
        """Injects this fault into the next call."""
        self._ordered.append(how)

    def no_limits(self) -> None:
        self.per_bot_s = self.per_chat_s = None

    def of_call(self, now: float) -> Break | None:
        """The fault of the call, or None. Raises `Refused`."""
        if self._ordered:
            return self._by_order(self._ordered.popleft())
        self._by_chance()
        self.count("bot", self.per_bot_s, now)
        return "reset" if self._chance(self.rate_reset) else None

    def of_chat(self, chat_id: int, now: float) -> None:
        """Counts a message in a chat. Raises `Refused` beyond the limit."""
        self.count(f"chat {chat_id}", self.per_chat_s, now)

    def count(self, whose: str, most: int | None, now: float) -> None:
        """Counts calls per second. Raises `Refused` beyond `most`."""
        window = self._windows.setdefault(whose, deque())
        while window and window[0] <= now - 1:
            window.popleft()
        if most is not None and len(window) >= most:
            raise too_many(self.retry_after_s)
        window.append(now)

    def _by_order(self, fault: Refused | Break) -> Break:
        if isinstance(fault, Refused):
            raise fault
        return fault

    def _by_chance(self) -> None:
        if self._chance(self.rate_429):
            raise too_many(self.retry_after_s)
        if self._chance(self.rate_5xx):
            raise unavailable()

    def _chance(self, rate: float) -> bool:
        if self._random is None:
            self._random = random.Random(self.seed)  # noqa: S311 - faults, no secrets
        return rate > 0 and self._random.random() < rate
