"""Rate limits of bots (Bot API, "Bots FAQ: My bot is hitting limits")."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field

from msgsvc_devkit.platforms.telegram.calls import too_many_requests


@dataclass(slots=True)
class Limits:
    """Maximum messages per second or minute; None is no limit.

    A rejected message does not count.
    """

    per_bot_s: int | None = 30
    #: Instead of `per_bot_s`, for messages that are paid (Bot API, sendMessage: `allow_paid_broadcast`).
    paid_per_bot_s: int | None = 1000
    per_chat_s: int | None = 1
    per_group_min: int | None = 20
    _sent: defaultdict[tuple[str, int], deque[float]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    @classmethod
    def off(cls) -> "Limits":
        return cls(per_bot_s=None, paid_per_bot_s=None, per_chat_s=None, per_group_min=None)

    def take(self, bot_id: int, chat_id: int, now: float, *, paid: bool = False) -> None:
        """Counts a message at `now`, in seconds. Raises `Refusal` with 429 beyond a limit."""
        if paid:
            windows = [(("paid", bot_id), self.paid_per_bot_s, 1.0)]
        else:
            windows = [(("bot", bot_id), self.per_bot_s, 1.0)]
        if chat_id < 0:
            windows.append((("chat", chat_id), self.per_group_min, 60.0))
        else:
            windows.append((("chat", chat_id), self.per_chat_s, 1.0))
        for key, limit, seconds in windows:
            wait = self._wait(key, limit, seconds, now)
            if wait > 0:
                raise too_many_requests(math.ceil(wait))
        for key, limit, _ in windows:
            if limit is not None:
                self._sent[key].append(now)

    def _wait(self, key: tuple[str, int], limit: int | None, seconds: float, now: float) -> float:
        if limit is None:
            return 0.0
        sent = self._sent[key]
        while sent and sent[0] <= now - seconds:
            sent.popleft()
        return sent[0] + seconds - now if len(sent) >= limit else 0.0
