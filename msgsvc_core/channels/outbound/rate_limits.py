"""Rate limits of a bot's calls, and the turns that are reserved for claimed jobs."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from itertools import takewhile

from msgsvc_core.channels.contract import Pace
from msgsvc_core.channels.outbound.pacing import Entry, Pacer, Window
from msgsvc_core.channels.registry import Channels
from msgsvc_core.jobs.contract import Job
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics

#: Seconds ahead of their calls for which jobs of a rate-limited bot are claimed. It bounds the delay of
#: urgent jobs, and hides the time for reading and writing batches.
AHEAD_S = 0.4

#: Seconds for which a turn of the bot is reserved for a claimed job: twice as long as it should take.
RESERVED_S = 2 * AHEAD_S

UNPACED = Pace()

#: Raises `ChannelPaused` if no call may be made, in this chat if it is one.
CheckOpen = Callable[[str | None], None]


class RateLimits:
    """The rate limits of one channel, as its bot has them now."""

    def __init__(self, key: str, *, channels: Channels, metrics: ChannelMetrics) -> None:
        self._key = key
        self._channels = channels
        self._metrics = metrics
        self._pacer: Pacer | None = None
        self._pace = UNPACED
        self._lock = asyncio.Lock()
        #: Claimed jobs whose calls have not started, oldest first, with the time until which a turn of the
        #: bot is reserved for each.
        self._reserved: dict[str, float] = {}

    def forget(self) -> None:
        """Starts with empty windows, as the lane's new owner."""
        self._pacer, self._pace = None, UNPACED

    def pacer(self) -> Pacer | None:
        """The pacer for the channel's current rate limits; None if it has none."""
        channel = self._channels.get(self._key)
        pace = UNPACED if channel is None else channel.pace
        if self._pace is not pace:
            if channel is None or pace == UNPACED:
                self._pacer = None
            elif self._pacer is None or self._pace != pace:
                self._pacer = Pacer(pace, channel.is_group, time.monotonic)
            self._pace = pace
        return self._pacer

    @property
    def chat_step_ms(self) -> int:
        """Milliseconds between two calls in a chat."""
        pacer = self.pacer()
        if pacer is None or not pacer.pace.per_chat_s:
            return 0
        return math.ceil(1000 / pacer.pace.per_chat_s)

    async def enter(
        self, pacer: Pacer, job: Job, chat_id: str | None, check_open: CheckOpen
    ) -> Entry:
        """Waits for the rate limits of chat and bot. There must be no await between this and the call."""
        began_s = time.monotonic()
        while chat_id is not None and (wait_s := pacer.chat_wait_s(chat_id)) > 0:
            # Other calls use the bot's turns meanwhile.
            self._reserved.pop(job.job_id, None)
            await asyncio.sleep(wait_s)
            check_open(chat_id)
        entry = pacer.enter(chat_id)
        try:
            if pacer.bot is None:
                check_open(chat_id)
            else:
                await self._enter_bot(pacer.bot, entry, chat_id, check_open)
        except BaseException:
            entry.cancel()
            raise
        self._metrics.waited(self._key, time.monotonic() - began_s)
        return entry

    async def _enter_bot(
        self, bot: Window, entry: Entry, chat_id: str | None, check_open: CheckOpen
    ) -> None:
        async with self._lock:
            check_open(chat_id)
            while (wait_s := bot.wait_s(time.monotonic())) > 0:
                await asyncio.sleep(wait_s)
                check_open(chat_id)
            entry.join(bot, time.monotonic())

    def free(self) -> tuple[int, int] | None:
        """How many jobs may be claimed within the bot's rate limit, and milliseconds until the next check;
        None without a limit."""
        pacer = self.pacer()
        if pacer is None or pacer.bot is None:
            return None
        step_s = pacer.bot.step_s
        free = pacer.bot.room(time.monotonic(), AHEAD_S) - self.reserved()
        # Claiming them one by one would cost a transaction each.
        least = max(1, int(AHEAD_S / step_s / 2))
        if free >= least:
            return free, 0
        return 0, math.ceil((least - free) * step_s * 1000)

    # ---- reservations ---------------------------------------------------------------------------

    def reserve(self, jobs: Sequence[Job], *, is_trial: bool) -> None:
        """Reserves the bot's next turns for the calls of these jobs, if turns are limited: by rate limits or
        by the calls of a trial."""
        if self._pacer is not None or is_trial:
            until_s = time.monotonic() + RESERVED_S
            for job in jobs:
                # Again at the end, if it is there.
                self._reserved.pop(job.job_id, None)
                self._reserved[job.job_id] = until_s

    def reserved(self) -> int:
        """How many turns of the bot are reserved.

        A job that has not called in time waits for something else, such as its chat, or the end of a batch
        with the same recipient in which a call got no response. Others use its turn.
        """
        now_s = time.monotonic()
        late = list(takewhile(lambda job_id: self._reserved[job_id] <= now_s, self._reserved))
        for job_id in late:
            del self._reserved[job_id]
        return len(self._reserved)

    def release(self, job: Job) -> None:
        """The job makes its call now, or has ended."""
        if self._reserved:
            self._reserved.pop(job.job_id, None)
