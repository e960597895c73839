"""Outbound gate of a channel: rate limits, pauses the platform asked for, circuit breaker.

It lives in the process that leases the channel's lane.
"""

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import (
    ChannelPaused,
    DeliveryError,
    LimitReached,
    LocalFailure,
    Reason,
)
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.availability import Availability
from msgsvc_core.channels.outbound.circuit import Permit
from msgsvc_core.channels.outbound.concurrency import ConcurrencyLimit, Slots
from msgsvc_core.channels.outbound.ordering import FifoKeyLock, RetryOrder
from msgsvc_core.channels.outbound.pauses import Pauses, wait_s
from msgsvc_core.channels.outbound.rate_limits import RateLimits
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.sections import JobSettings
from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs.contract import Backoff, Capacity, Job, JobContext, Reschedule
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics

T = TypeVar("T")

#: Concurrent batches of a lane, and jobs per batch, while the platform is quick: one batch is read or written
#: during the calls of the other.
BATCHES, BATCH = 2, 100

#: Concurrent batches of a rate-limited bot or a slow platform: their batches are small, and slow calls must
#: not occupy them all.
PACED_BATCHES = 32

#: Number of batches into which the jobs in flight on a slow platform are divided: a batch is written when the
#: last of its calls has ended.
SLOW_BATCHES = 4

#: Maximum in flight on a channel: mailings, and one batch beside them. With half as many more a broadcast was
#: no quicker.
MAX_IN_FLIGHT = 300

#: Milliseconds between checks whether capacity in flight was freed; without a database statement.
CHANGED_MS = 50

#: Seconds between an owner's checks whether the channel was stopped or resumed.
REFRESH_S = 1.0

#: Milliseconds for which a locally failed job is not overtaken, until the lane has rescheduled it.
FAILED_MS = 1000


class OutboundGate:
    """The outgoing calls of one channel. Implements its lane's gate (`jobs.contract.Gate`)."""

    def __init__(
        self,
        key: str,
        *,
        clock: Clock,
        db: Database,
        jobs: JobQueue,
        channels: Channels,
        states: ChannelStates,
        outages: ChannelOutages,
        metrics: ChannelMetrics,
        settings: JobSettings,
    ) -> None:
        self.key = key
        self.order = RetryOrder()
        #: Keeps the order in each chat across the lane's concurrent batches.
        self.turns = FifoKeyLock()
        self.concurrency = ConcurrencyLimit(
            least=settings.min_in_flight, most=MAX_IN_FLIGHT, now_s=time.monotonic
        )
        self._rate_limits = RateLimits(key, channels=channels, metrics=metrics)
        self._pauses = Pauses(key, clock=clock, db=db, states=states)
        self._availability = Availability(
            key, db=db, channels=channels, states=states, outages=outages, settings=settings
        )
        self._circuit = self._availability.circuit
        self._clock = clock
        self._jobs = jobs
        self._states = states
        self._metrics = metrics
        self._refreshed_at_s = -math.inf

    # ---- for handlers ---------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether no call may be made now."""
        # Called for every call, and rarely True.
        return self._availability.blocks or self._pauses.is_paused

    async def free_slots(self) -> Slots | None:
        """Waits until one more call may be in flight; None if no call may be made then."""
        await self.concurrency.until_available()
        return None if self.closed else self.concurrency.slots()

    def chat_delays_s(self, chat_ids: Iterable[str], patience_s: float) -> dict[str, float]:
        """The chats that may not wait here, with their delays in seconds: see `chat_delay_s`."""
        if self._rate_limits.pacer() is None and not self._pauses.has_chats:
            return {}
        delays = {chat_id: self.chat_delay_s(chat_id, patience_s) for chat_id in chat_ids}
        return {chat_id: delay_s for chat_id, delay_s in delays.items() if delay_s is not None}

    def chat_delay_s(self, chat_id: str, patience_s: float) -> float | None:
        """Seconds after which a call in the chat must be retried; None if it may wait here.

        It may wait up to `patience_s` for the chat's rate limit, but never for a pause that the platform
        asked for.
        """
        pacer = self._rate_limits.pacer()
        limit_s = 0.0 if pacer is None else pacer.chat_wait_s(chat_id)
        pause_s = self._pauses.chat_s(chat_id)
        return max(limit_s, pause_s) if pause_s > 0 or limit_s > patience_s else None

    async def call(
        self, channel: Channel, job: Job, chat_id: str | None, make: Callable[[], Awaitable[T]]
    ) -> T:
        """Makes one call of `channel`, after waiting for capacity in flight and for the rate limits of bot
        and chat.

        `chat_id` is None for a call that shows nothing in a chat. Raises what the call raises, and
        `ChannelPaused` if the bot may not make calls. The gate applies what the platform's response says
        about the bot.
        """
        await self.concurrency.until_available()
        with self.concurrency.slots() as slots:
            slots.acquire([job.job_id])
            return await self.call_in_flight(channel, job, chat_id, make)

    async def call_in_flight(
        self, channel: Channel, job: Job, chat_id: str | None, make: Callable[[], Awaitable[T]]
    ) -> T:
        """Like `call`, for a call that is counted as in flight already."""
        pacer = self._rate_limits.pacer()
        if pacer is None:
            self._check_open(chat_id)
            entry = None
        else:
            entry = await self._rate_limits.enter(pacer, job, chat_id, self._check_open)
        self._rate_limits.release(job)
        permit = self._circuit.begin()
        if permit is None:
            if entry is not None:
                entry.cancel()
            raise ChannelPaused
        began_s = time.monotonic()
        try:
            try:
                made = await make()
            finally:
                if entry is not None:
                    entry.end(time.monotonic())
        except DeliveryError as error:
            self._count_answer(error, began_s)
            await self._learn(channel, chat_id, error, permit)
            raise
        except BaseException:
            self._circuit.released(permit)
            raise
        self._pauses.succeeded()
        self.concurrency.answered(began_s)
        if self._circuit.succeeded():
            await self._availability.end_outage(channel)
        return made

    async def defer_overtaking(self, ctx: JobContext, jobs: Sequence[Job]) -> list[Job]:
        """Reschedules a batch's jobs that would overtake others; returns the rest."""
        if not self.order:
            return list(jobs)
        left: list[Job] = []
        back: list[Reschedule] = []
        for job in sorted(jobs, key=lambda job: (job.priority, job.job_id)):
            until_ms = self.order.behind(job, self._clock.now_ms())
            if until_ms is None:
                left.append(job)
            else:
                # A little later: with the same due time it would run right after them.
                back += self.reschedule([job], until_ms + max(1, self._rate_limits.chat_step_ms))
        if back:
            async with ctx.putting_back(back):
                pass
        return left

    def reschedule(
        self, jobs: Sequence[Job], at_ms: int, *, counts: bool = False
    ) -> list[Reschedule]:
        """Reschedules jobs of one recipient, the first until `at_ms`, the others after it.

        `counts` is whether that was an attempt of the first. Later jobs of the recipient wait for them.
        """
        step_ms = self._rate_limits.chat_step_ms
        back: list[Reschedule] = []
        for number, job in enumerate(jobs):
            until_ms = at_ms + number * step_ms
            self.order.record(job, until_ms)
            back.append(Reschedule(job, until_ms, counts and number == 0))
        return back

    def on_failed(self, jobs: Sequence[Job]) -> None:
        """Records that jobs failed and will be retried, before the next jobs of their recipients run. The
        lane reports the exact time once it is written."""
        until_ms = self._clock.now_ms() + FAILED_MS
        for job in jobs:
            self.order.record(job, until_ms)

    def release(self, jobs: Sequence[Job]) -> list[Reschedule]:
        """Returns jobs to the queue unchanged, to be claimed when the bot may make calls again."""
        now_ms = self._clock.now_ms()
        for job in jobs:
            # The bot may resume before the recipient's later jobs, already claimed, are paused.
            self.order.record(job, max(now_ms, job.run_at_ms))
        return [Reschedule(job, None) for job in jobs]

    def retry_at_ms(self, error: DeliveryError, backoff: Backoff, attempts: int) -> int:
        """When to retry: by the platform's `retry_after`, or by `backoff`."""
        return self._clock.now_ms() + math.ceil(wait_s(error, backoff, attempts) * 1000)

    # ---- the lane's gate ------------------------------------------------------------------------

    async def _acquire(self, tx: Tx) -> None:
        """Takes over the lane: starts with empty buckets, the stored pause, and the stored order."""
        self._rate_limits.forget()
        self._pauses.take_over(await self._states.find(tx, self.key))
        self.order.forget()
        for job in await self._jobs.list_postponed(tx, lane_of(self.key)):
            self.order.record(job, job.run_at_ms)
        self.order.interrupted(await self._jobs.list_interrupted(tx, lane_of(self.key)))
        self._refreshed_at_s = -math.inf

    @property
    def needs_refresh(self) -> bool:
        return time.monotonic() - self._refreshed_at_s >= REFRESH_S

    async def refresh(self, tx: Tx, *, acquired: bool) -> Capacity:
        if acquired:
            await self._acquire(tx)
        elif self.order.has_interrupted and self.needs_refresh:
            # One that was deleted is waited for no longer.
            self.order.interrupted(await self._jobs.list_interrupted(tx, lane_of(self.key)))
        if self.needs_refresh and not self._availability.is_writing:
            self._refreshed_at_s = time.monotonic()
            stored_ms = self._pauses.stored_ms
            state = await self._states.find(tx, self.key)
            self._availability.synchronize(state)
            self._pauses.synchronize(state, stored_ms)
        return self.capacity()

    def capacity(self) -> Capacity:
        paced, limit = self.paced_capacity(), self.concurrency
        free, now_ms = limit.claimable, self._clock.now_ms()
        if paced is not None and paced.jobs <= 0:
            return paced
        if free <= 0:
            return Capacity(0, PACED_BATCHES, now_ms + CHANGED_MS)
        # A few responses say little about the platform, so it is treated as slow at first.
        is_slow = limit.limit < BATCH
        batch = max(1, limit.limit // SLOW_BATCHES) if is_slow else None
        if paced is not None:
            return replace(paced, jobs=min(paced.jobs, free), batch=batch)
        return Capacity(free, PACED_BATCHES if is_slow else BATCHES, now_ms, batch)

    def paced_capacity(self) -> Capacity | None:
        """Capacity within the rate limit, a pause, a stop or an outage; None if none of them applies."""
        now_ms, refresh_ms = self._clock.now_ms(), round(REFRESH_S * 1000)
        if self.closed:
            blocks = self._availability.blocks
            wait_ms = refresh_ms if blocks else min(self._pauses.left_ms, refresh_ms)
            return Capacity(0, PACED_BATCHES, now_ms + max(1, wait_ms))
        if self._circuit.left is not None:
            # A trial: only a few calls.
            left = max(0, self._circuit.left - self._rate_limits.reserved())
            return Capacity(left, PACED_BATCHES, now_ms + refresh_ms)
        free = self._rate_limits.free()
        return None if free is None else Capacity(free[0], PACED_BATCHES, now_ms + free[1])

    def claimed(self, jobs: Sequence[Job]) -> None:
        self.order.claimed(jobs)
        self.concurrency.claimed([job.job_id for job in jobs])
        self.reserve_turns(jobs)

    def reserve_turns(self, jobs: Sequence[Job]) -> None:
        """Reserves the bot's next turns for the calls of these jobs."""
        self._rate_limits.reserve(jobs, is_trial=self._circuit.left is not None)

    def put_back(self, job: Job, until_ms: int) -> None:
        self.order.record(job, until_ms)

    def ended(self, jobs: Sequence[Job]) -> None:
        self.order.ended(jobs)
        self.concurrency.dropped([job.job_id for job in jobs])
        for job in jobs:
            self._rate_limits.release(job)

    # ---- responses of the platform --------------------------------------------------------------

    def changed(self, *, stopped: bool) -> None:
        """The channel was stopped, resumed or changed to another bot in this process."""
        self._availability.is_stopped = stopped
        self._refreshed_at_s = -math.inf

    def outage_changed(self) -> None:
        """The outage was ended, or set to trial, in this process."""
        self._refreshed_at_s = -math.inf

    async def _learn(
        self, channel: Channel, chat_id: str | None, error: DeliveryError, permit: Permit
    ) -> None:
        """Applies what an error says about the platform, the bot or the chat."""
        await self._availability.failed(channel, error, permit)
        if isinstance(error, LimitReached):
            # Others may still be sent to.
            return
        if error.reason is Reason.RATE_LIMITED:
            self._metrics.refused(self.key, error.scope)
            if error.scope == "chat" and chat_id is not None:
                self._pauses.pause_chat(chat_id, error)
            else:
                await self._pauses.pause(error, is_closed=self.closed)
        elif error.reason is Reason.BOT_BANNED and not await self._availability.stopped_by(
            channel, error
        ):
            raise ChannelPaused from error

    def _count_answer(self, error: DeliveryError, began_s: float) -> None:
        """Counts a response; errors are responses too. Local failures say nothing about the platform."""
        if isinstance(error, LocalFailure):
            return
        if error.reason is Reason.PLATFORM_UNAVAILABLE:
            self.concurrency.unanswered()
        else:
            self.concurrency.answered(began_s)

    def _check_open(self, chat_id: str | None) -> None:
        """Raises `ChannelPaused`. There must be no await between this check and the call."""
        if self.closed or (chat_id is not None and self._pauses.chat_s(chat_id) > 0):
            raise ChannelPaused
