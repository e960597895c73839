"""Paid broadcasts: messages beyond the free rate, for Stars of the bot's balance and within a budget."""

from collections import deque
from typing import Any

import structlog

from msgsvc_core.channels import Budget, ChannelSpending, DeliveryError, Reason
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.kernel.clock import Clock

#: Parts of a Star that a message costs (Bot API, sendMessage: "a fee of 0.1 Telegram Stars per message").
PARTS = 10

#: Messages that are taken from the budget at once, so that not each of them waits for the database.
AT_ONCE = 20

#: Milliseconds in which messages are counted: a second, and how much closer together they may arrive.
WINDOW_MS = 1_100

#: Milliseconds for which calls may still come that the faster pace has let through.
LATE_MS = 2_000

log = structlog.get_logger(__name__)


class PaidBroadcasts:
    """Decides for each message of a bot whether it is paid, in the process that sends for it."""

    def __init__(
        self,
        *,
        key: str,
        clock: Clock,
        spending: ChannelSpending,
        stars: int,
        free_per_s: float,
    ) -> None:
        self.budget = Budget(stars * PARTS, "Stars", PARTS)
        self._key = key
        self._clock = clock
        self._spending = spending
        self._free = int(free_per_s)
        #: When the last messages began that were free.
        self._sent_ms: deque[int] = deque()
        #: Taken from the budget of a day, and not yet used.
        self._taken = 0
        self._day = 0
        #: The day whose budget is used up, and when that was found.
        self._used_up_day = -1
        self._used_up_ms = 0

    @property
    def used_up(self) -> bool:
        """Whether nothing is left for today."""
        return self._used_up_day == self._spending.day()

    async def params(self) -> dict[str, Any]:
        """The parameters by which the next message is paid; none if it is free.

        Raises `DeliveryError` for a message that would be neither, since nothing is left of the budget.
        """
        now_ms = self._clock.monotonic_ms()
        if self.used_up and now_ms - self._used_up_ms > LATE_MS:
            # The pace is the free one.
            return {}
        while self._sent_ms and self._sent_ms[0] <= now_ms - WINDOW_MS:
            self._sent_ms.popleft()
        if len(self._sent_ms) < self._free:
            self._sent_ms.append(now_ms)
            return {}
        if await self._pay():
            return {"allow_paid_broadcast": True}
        raise DeliveryError(
            Reason.RATE_LIMITED, "the day's budget of paid broadcasts is used up", 1.0
        )

    def refund(self, params: dict[str, Any]) -> None:
        """The message with these parameters was refused, which costs nothing."""
        if params and self._day == self._spending.day():
            self._taken += 1

    async def _pay(self) -> bool:
        if self.used_up:
            return False
        if self._day != self._spending.day():
            self._day, self._taken = self._spending.day(), 0
        if self._taken == 0:
            for amount in (AT_ONCE, 1):
                if await self._take(amount):
                    self._taken += amount
                    break
            # Another message may have taken some meanwhile.
            if self._taken == 0:
                self._used_up_day, self._used_up_ms = self._day, self._clock.monotonic_ms()
                log.warning("stars_used_up", channel=self._key)
                return False
        self._taken -= 1
        return True

    async def _take(self, amount: int) -> bool:
        try:
            return await self._spending.take(self._key, amount, self.budget)
        except DatabaseUnavailable as error:
            # Nothing is spent that isn't recorded.
            raise DeliveryError(Reason.RATE_LIMITED, "the budget can't be read", 1.0) from error
