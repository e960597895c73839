"""Pauses that a platform asked for: of a bot, and of single chats."""

import math
import random

import structlog

from msgsvc_core.channels.failures import DeliveryError
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.jobs.contract import Backoff, exponential
from msgsvc_core.kernel.clock import Clock

#: Seconds to wait after the n-th consecutive 429 without a `retry_after`.
REFUSED_BACKOFF = exponential(first_s=1, factor=2, max_s=60)

#: Jitter of waits that we choose, as a fraction, so that retries are spread.
SPREAD = 0.2

log = structlog.get_logger(__name__)


def wait_s(error: DeliveryError, backoff: Backoff, attempts: int) -> float:
    """Seconds until a retry: the platform's `retry_after`, or by `backoff`."""
    if error.retry_after_s is None:
        return backoff(attempts) * random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311 - jitter is no secret
    return error.retry_after_s


class Pauses:
    """The pauses of one bot and its chats. The bot's pause is stored, so the lane's next owner keeps it; the
    chats' pauses are in memory."""

    def __init__(self, key: str, *, clock: Clock, db: Database, states: ChannelStates) -> None:
        self._key = key
        self._clock = clock
        self._db = db
        self._states = states
        #: End of the bot's pause, by `clock.monotonic_ms`; the same in Unix milliseconds, and as stored.
        self._ends_ms = 0
        self._until_ms = self._stored_ms = 0
        self._storing = False
        self._refusals = 0
        self._chats: dict[str, int] = {}

    @property
    def is_paused(self) -> bool:
        return self._ends_ms > 0 and self._ends_ms > self._clock.monotonic_ms()

    @property
    def left_ms(self) -> int:
        """Milliseconds that remain of the bot's pause."""
        return max(0, self._ends_ms - self._clock.monotonic_ms())

    @property
    def stored_ms(self) -> int:
        """End of the pause as stored, in Unix milliseconds."""
        return self._stored_ms

    def take_over(self, state: ChannelState | None) -> None:
        """Continues the stored pause of the lane's previous owner."""
        now_ms = self._clock.now_ms()
        if state is not None and state.paused_until_ms > now_ms:
            self._pause_for(state.paused_until_ms - now_ms)
            self._until_ms = max(self._until_ms, state.paused_until_ms)
            self._stored_ms = max(self._stored_ms, state.paused_until_ms)

    def synchronize(self, state: ChannelState | None, stored_ms: int) -> None:
        """Adopts a shorter stored pause than what we wrote: it belongs to another bot.

        `stored_ms` is the property before `state` was read: what was written meanwhile is newer.
        """
        if self._storing or stored_ms != self._stored_ms:
            return
        until_ms = 0 if state is None else state.paused_until_ms
        if until_ms < self._stored_ms:
            self._until_ms = self._stored_ms = until_ms
            self._ends_ms = 0
            self._pause_for(until_ms - self._clock.now_ms())

    async def pause(self, error: DeliveryError, *, is_closed: bool) -> None:
        """Pauses the bot after a 429. `is_closed` is whether the bot may make no calls already: the answers
        of concurrent calls count as one refusal."""
        if error.retry_after_s is None and not is_closed:
            self._refusals += 1
        wait_ms = math.ceil(wait_s(error, REFUSED_BACKOFF, max(1, self._refusals)) * 1000)
        self._pause_for(wait_ms)
        self._until_ms = max(self._until_ms, self._clock.now_ms() + wait_ms)
        if self._storing:
            return
        self._storing = True
        try:
            # If 100 concurrent calls are refused, only the first one writes.
            while self._stored_ms < self._until_ms:
                stored_ms = self._until_ms
                async with self._db.transaction() as tx:
                    await self._states.pause(tx, self._key, stored_ms)
                self._stored_ms = stored_ms
        except DatabaseUnavailable as failure:
            log.warning("pause_not_written", channel=self._key, error=str(failure))
        finally:
            self._storing = False

    def succeeded(self) -> None:
        """A call was accepted: the next refusal is the first."""
        self._refusals = 0

    def _pause_for(self, wait_ms: int) -> None:
        self._ends_ms = max(self._ends_ms, self._clock.monotonic_ms() + wait_ms)

    # ---- chats ----------------------------------------------------------------------------------

    @property
    def has_chats(self) -> bool:
        return bool(self._chats)

    def pause_chat(self, chat_id: str, error: DeliveryError) -> None:
        wait_ms = math.ceil(wait_s(error, REFUSED_BACKOFF, 1) * 1000)
        ends_ms = self._clock.monotonic_ms() + wait_ms
        self._chats[chat_id] = max(self._chats.get(chat_id, 0), ends_ms)

    def chat_s(self, chat_id: str) -> float:
        """Seconds that remain of the platform's pause in this chat."""
        if not self._chats:
            return 0.0
        left_ms = self._chats.get(chat_id, 0) - self._clock.monotonic_ms()
        if left_ms <= 0:
            self._chats.pop(chat_id, None)
        return max(0, left_ms) / 1000
