"""Outbound gate of a channel: rate limits, pauses the platform asked for, circuit breaker.

It lives in the process that leases the channel's lane.
"""

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TypeVar

import structlog

from msgsvc_core.channels.circuit import CircuitBreaker, Permit
from msgsvc_core.channels.concurrency import ConcurrencyLimit, Slots
from msgsvc_core.channels.contract import Channel, Pace
from msgsvc_core.channels.failures import (
    ChannelPaused,
    DeliveryError,
    LimitReached,
    LocalFailure,
    Reason,
)
from msgsvc_core.channels.lanes import LANE, channel_of, lane_of
from msgsvc_core.channels.ordering import FifoKeyLock, RetryOrder, receiver_of
from msgsvc_core.channels.outages import ChannelOutages
from msgsvc_core.channels.pacing import Entry, Pacer, Window
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.states import ChannelStates
from msgsvc_core.config.settings import JobSettings
from msgsvc_core.db import Database, DatabaseUnavailable, Tx
from msgsvc_core.jobs.contract import (
    Backoff,
    Capacity,
    Job,
    JobContext,
    LaneSpec,
    Reschedule,
    exponential,
)
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.telemetry.channel_metrics import ChannelMetrics

T = TypeVar("T")

#: Seconds ahead of their calls for which jobs of a rate-limited bot are claimed. It bounds the delay of
#: urgent jobs, and hides the time for reading and writing batches.
AHEAD_S = 0.4

#: Seconds for which a turn of the bot is reserved for a claimed job: twice as long as it should take.
RESERVED_S = 2 * AHEAD_S

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

#: Seconds to wait after the n-th consecutive 429 without a `retry_after`.
REFUSED_BACKOFF = exponential(first_s=1, factor=2, max_s=60)

#: Jitter of waits that we choose, as a fraction, so that retries are spread.
SPREAD = 0.2

UNPACED = Pace()

#: Errors that concern one message or user: the platform responded, so there is no outage.
ANSWERS = frozenset({Reason.USER_BLOCKED_BOT, Reason.CHAT_NOT_FOUND, Reason.RATE_LIMITED})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OutboundBatch:
    """Jobs of one channel, which is None if it was removed: see `OutboundGates.batch`.

    `repeatable` is whether a call with a lost response may be repeated: see `Capabilities.repeatable`.
    """

    ctx: JobContext
    channel: Channel | None
    gate: "OutboundGate"
    jobs: Sequence[Job]
    repeatable: bool


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
        self._clock = clock
        self._db = db
        self._jobs = jobs
        self._channels = channels
        self._states = states
        self._outages = outages
        self._metrics = metrics
        self._pacer: Pacer | None = None
        self._pace = UNPACED
        self._bot_turn = asyncio.Lock()
        #: Claimed jobs whose calls have not started, oldest first, with the time until which a turn of the
        #: bot is reserved for each.
        self._ahead: dict[str, float] = {}
        self._stopped = False
        self._circuit = CircuitBreaker(
            failures=settings.outage_failures, trial_calls=settings.trial_calls
        )
        self.concurrency = ConcurrencyLimit(
            least=settings.min_in_flight, most=MAX_IN_FLIGHT, now_s=time.monotonic
        )
        #: End of the bot's pause, by `clock.monotonic_ms`; the same in Unix milliseconds, and as stored.
        self._pause_ends_ms = 0
        self._until_ms = self._noted_ms = 0
        self._noting = False
        self._refusals = 0
        #: The pauses of single chats.
        self._chat_pauses: dict[str, int] = {}
        self._refreshed_at_s = -math.inf
        #: Our changes that are being written: meanwhile the database's state is older than ours.
        self._writing = 0

    # ---- for handlers ---------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether no call may be made now."""
        # Called for every call, and rarely True.
        return (
            self._stopped
            or self._circuit.blocks
            or (self._pause_ends_ms > 0 and self._pause_ends_ms > self._monotonic_ms())
        )

    async def free_slots(self) -> Slots | None:
        """Waits until one more call may be in flight; None if no call may be made then."""
        await self.concurrency.until_available()
        return None if self.closed else self.concurrency.slots()

    def chat_delays_s(self, chat_ids: Iterable[str], patience_s: float) -> dict[str, float]:
        """The chats that may not wait here, with their delays in seconds: see `chat_delay_s`."""
        if self._paced() is None and not self._chat_pauses:
            return {}
        delays = {chat_id: self.chat_delay_s(chat_id, patience_s) for chat_id in chat_ids}
        return {chat_id: delay_s for chat_id, delay_s in delays.items() if delay_s is not None}

    def chat_delay_s(self, chat_id: str, patience_s: float) -> float | None:
        """Seconds after which a call in the chat must be retried; None if it may wait here.

        It may wait up to `patience_s` for the chat's rate limit, but never for a pause that the platform
        asked for.
        """
        pacer = self._paced()
        wait_s = 0.0 if pacer is None else pacer.chat_wait_s(chat_id)
        pause_s = self._chat_pause_s(chat_id)
        return max(wait_s, pause_s) if pause_s > 0 or wait_s > patience_s else None

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
        pacer = self._paced()
        if pacer is None:
            self._check_open(chat_id)
            entry = None
        else:
            entry = await self._enter(pacer, job, chat_id)
        if self._ahead:
            self._ahead.pop(job.job_id, None)
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
        self._refusals = 0
        self.concurrency.answered(began_s)
        if self._circuit.succeeded():
            await self._end_outage(channel)
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
                back += self.reschedule([job], until_ms + max(1, self._chat_step_ms()))
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
        step_ms = self._chat_step_ms()
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
        if error.retry_after_s is None:
            wait_s = backoff(attempts) * random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311 - no secret
        else:
            wait_s = error.retry_after_s
        return self._clock.now_ms() + math.ceil(wait_s * 1000)

    # ---- the lane's gate ------------------------------------------------------------------------

    async def _acquire(self, tx: Tx) -> None:
        """Takes over the lane: starts with empty buckets, the stored pause, and the stored order."""
        self._pacer, self._pace = None, UNPACED
        state = await self._states.find(tx, self.key)
        now_ms = self._clock.now_ms()
        if state is not None and state.paused_until_ms > now_ms:
            self._pause_for(state.paused_until_ms - now_ms)
            self._until_ms = max(self._until_ms, state.paused_until_ms)
            self._noted_ms = max(self._noted_ms, state.paused_until_ms)
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
        if self.needs_refresh and not self._writing:
            self._refreshed_at_s = time.monotonic()
            noted_ms = self._noted_ms
            state = await self._states.find(tx, self.key)
            if not self._writing:
                # Nobody would ever report that a removed channel works again.
                is_here = self._channels.get(self.key) is not None
                self._stopped = is_here and state is not None and state.stopped
                is_out = is_here and state is not None and state.outage_since_ms is not None
                self._circuit.synchronize(
                    is_out=is_out, trial=0 if state is None else state.outage_trial
                )
            if not self._noting and noted_ms == self._noted_ms:
                self._forget_pause_beyond(0 if state is None else state.paused_until_ms)
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
        now_ms = self._clock.now_ms()
        if self.closed:
            left_ms = max(0, self._pause_ends_ms - self._monotonic_ms())
            most_ms = round(REFRESH_S * 1000)
            waits = self._stopped or self._circuit.blocks
            wait_ms = most_ms if waits else min(left_ms, most_ms)
            return Capacity(0, PACED_BATCHES, now_ms + max(1, wait_ms))
        if self._circuit.left is not None:
            # A trial: only a few calls.
            left = max(0, self._circuit.left - self._reserved())
            return Capacity(left, PACED_BATCHES, now_ms + round(REFRESH_S * 1000))
        pacer = self._paced()
        if pacer is None or pacer.bot is None:
            return None
        step_s = pacer.bot.step_s
        room = pacer.bot.room(time.monotonic(), AHEAD_S) - self._reserved()
        # Claiming them one by one would cost a transaction each.
        least = max(1, int(AHEAD_S / step_s / 2))
        if room >= least:
            return Capacity(room, PACED_BATCHES, now_ms)
        return Capacity(0, PACED_BATCHES, now_ms + math.ceil((least - room) * step_s * 1000))

    def claimed(self, jobs: Sequence[Job]) -> None:
        self.order.claimed(jobs)
        self.concurrency.claimed([job.job_id for job in jobs])
        self.reserve_turns(jobs)

    def reserve_turns(self, jobs: Sequence[Job]) -> None:
        """Reserves the bot's next turns for the calls of these jobs."""
        if self._pacer is not None or self._circuit.left is not None:
            until_s = time.monotonic() + RESERVED_S
            for job in jobs:
                # Again at the end, if it is there.
                self._ahead.pop(job.job_id, None)
                self._ahead[job.job_id] = until_s

    def _reserved(self) -> int:
        """How many turns of the bot are reserved.

        A job that has not called in time waits for something else, such as its chat, or the end of a batch
        with the same recipient in which a call got no response. Others use its turn.
        """
        now_s = time.monotonic()
        late = list(takewhile(lambda job_id: self._ahead[job_id] <= now_s, self._ahead))
        for job_id in late:
            del self._ahead[job_id]
        return len(self._ahead)

    def put_back(self, job: Job, until_ms: int) -> None:
        self.order.record(job, until_ms)

    def ended(self, jobs: Sequence[Job]) -> None:
        self.order.ended(jobs)
        self.concurrency.dropped([job.job_id for job in jobs])
        if self._ahead:
            for job in jobs:
                self._ahead.pop(job.job_id, None)

    # ---- responses of the platform --------------------------------------------------------------

    def changed(self, *, stopped: bool) -> None:
        """The channel was stopped, resumed or changed to another bot in this process."""
        self._stopped = stopped
        self._refreshed_at_s = -math.inf

    def outage_changed(self) -> None:
        """The outage was ended, or set to trial, in this process."""
        self._refreshed_at_s = -math.inf

    async def _learn(
        self, channel: Channel, chat_id: str | None, error: DeliveryError, permit: Permit
    ) -> None:
        """Applies what an error says about the platform, the bot or the chat."""
        await self._judge(channel, error, permit)
        if isinstance(error, LimitReached):
            # Others may still be sent to.
            return
        if error.reason is Reason.RATE_LIMITED:
            self._metrics.refused(self.key, error.scope)
            if error.scope == "chat" and chat_id is not None:
                wait_ms = self.retry_at_ms(error, REFUSED_BACKOFF, 1) - self._clock.now_ms()
                self._chat_pauses[chat_id] = max(
                    self._chat_pauses.get(chat_id, 0), self._monotonic_ms() + wait_ms
                )
            else:
                await self._pause(error)
        elif error.reason is Reason.BOT_BANNED and not await self._stopped_by(channel, error):
            raise ChannelPaused from error

    def _count_answer(self, error: DeliveryError, began_s: float) -> None:
        """Counts a response; errors are responses too. Local failures say nothing about the platform."""
        if isinstance(error, LocalFailure):
            return
        if error.reason is Reason.PLATFORM_UNAVAILABLE:
            self.concurrency.unanswered()
        else:
            self.concurrency.answered(began_s)

    async def _judge(self, channel: Channel, error: DeliveryError, permit: Permit) -> None:
        """Reports to the circuit breaker whether the platform responded."""
        is_away = error.reason is Reason.PLATFORM_UNAVAILABLE
        if error.reason in ANSWERS and not isinstance(error, LocalFailure):
            if self._circuit.succeeded():
                await self._end_outage(channel)
        elif not is_away or isinstance(error, LocalFailure) or not self._is_current(channel):
            self._circuit.released(permit)
        else:
            opened = self._circuit.failed(permit)
            # The first failure may be due to the message itself: it has been retried once.
            error.outage = self._circuit.unanswered > 1
            if opened:
                await self._note_outage(channel, error, permit)

    def _is_current(self, channel: Channel) -> bool:
        """Whether the channel is unchanged: an old error of another bot says nothing about this one."""
        return self._channels.get(self.key) is channel

    async def _note_outage(self, channel: Channel, error: DeliveryError, permit: Permit) -> None:
        """Records an outage, or that a trial has failed."""
        outages = self._outages
        async with self._writing_state("outage_not_written") as tx:
            if permit.trial is None or not await outages.trial_failed(
                tx, channel, permit.trial, error.text
            ):
                await outages.start(tx, channel, error.text)

    async def _end_outage(self, channel: Channel) -> None:
        async with self._writing_state("recovery_not_written") as tx:
            await self._outages.finish(tx, channel)

    @asynccontextmanager
    async def _writing_state(self, failure: str) -> AsyncIterator[Tx]:
        """A transaction whose failure is logged as `failure`: the next refresh reads the database's state,
        and the next call reports the platform's state again."""
        self._writing += 1
        try:
            async with self._db.transaction() as tx:
                yield tx
        except Exception:
            log.exception(failure, channel=self.key)
        finally:
            self._writing -= 1

    async def _pause(self, error: DeliveryError) -> None:
        if error.retry_after_s is None and not self.closed:
            self._refusals += 1
        until_ms = self.retry_at_ms(error, REFUSED_BACKOFF, max(1, self._refusals))
        self._pause_for(until_ms - self._clock.now_ms())
        self._until_ms = max(self._until_ms, until_ms)
        if self._noting:
            return
        self._noting = True
        try:
            # If 100 concurrent calls are refused, only the first one writes.
            while self._noted_ms < self._until_ms:
                noted_ms = self._until_ms
                async with self._db.transaction() as tx:
                    await self._states.pause(tx, self.key, noted_ms)
                self._noted_ms = noted_ms
        except DatabaseUnavailable as failure:
            log.warning("pause_not_written", channel=self.key, error=str(failure))
        finally:
            self._noting = False

    def _forget_pause_beyond(self, noted_ms: int) -> None:
        """Corrects the stored pause if it is shorter than what we wrote: it belongs to another bot."""
        if noted_ms < self._noted_ms:
            self._until_ms = self._noted_ms = noted_ms
            self._pause_ends_ms = 0
            self._pause_for(noted_ms - self._clock.now_ms())

    def _pause_for(self, wait_ms: int) -> None:
        self._pause_ends_ms = max(self._pause_ends_ms, self._monotonic_ms() + wait_ms)

    async def _stopped_by(self, channel: Channel, error: DeliveryError) -> bool:
        """Whether this error stops the bot. Only one message reports it; the others wait. An error of the
        channel's previous bot does not stop the new one, which repeats the call."""
        current = self._channels.get(self.key)
        if current is None:
            return True
        return current is channel and not self._stopped and await self._stop(channel, error)

    async def _stop(self, channel: Channel, error: DeliveryError) -> bool:
        """False if it was stopped already, or the stop could not be recorded."""
        self._stopped = True
        self._writing += 1
        try:
            async with self._db.transaction() as tx:
                return await self._states.stop(tx, channel, str(error.reason), error.text)
        except Exception:
            # The edge: the database or a plugin's hook failed. The next refresh will find the bot working,
            # and one call will be refused again; if each failure cost a message, all would be lost.
            log.exception("stop_not_written", channel=self.key)
            return False
        finally:
            self._writing -= 1

    # ---- rate limits ----------------------------------------------------------------------------

    async def _enter(self, pacer: Pacer, job: Job, chat_id: str | None) -> Entry:
        began_s = time.monotonic()
        while chat_id is not None and (wait_s := pacer.chat_wait_s(chat_id)) > 0:
            # Other calls use the bot's turns meanwhile.
            self._ahead.pop(job.job_id, None)
            await asyncio.sleep(wait_s)
            self._check_open(chat_id)
        entry = pacer.enter(chat_id)
        try:
            if pacer.bot is None:
                self._check_open(chat_id)
            else:
                await self._enter_bot(pacer.bot, entry, chat_id)
        except BaseException:
            entry.cancel()
            raise
        self._metrics.waited(self.key, time.monotonic() - began_s)
        return entry

    async def _enter_bot(self, bot: Window, entry: Entry, chat_id: str | None) -> None:
        async with self._bot_turn:
            self._check_open(chat_id)
            while (wait_s := bot.wait_s(time.monotonic())) > 0:
                await asyncio.sleep(wait_s)
                self._check_open(chat_id)
            entry.join(bot, time.monotonic())

    def _check_open(self, chat_id: str | None) -> None:
        """Raises `ChannelPaused`. There must be no await between this check and the call."""
        if self.closed or (chat_id is not None and self._chat_pause_s(chat_id) > 0):
            raise ChannelPaused

    def _chat_pause_s(self, chat_id: str) -> float:
        """Seconds that remain of the platform's pause in this chat."""
        if not self._chat_pauses:
            return 0.0
        left_ms = self._chat_pauses.get(chat_id, 0) - self._monotonic_ms()
        if left_ms <= 0:
            self._chat_pauses.pop(chat_id, None)
        return max(0, left_ms) / 1000

    def _paced(self) -> Pacer | None:
        """The pacer for the channel's current rate limits; None if it has none."""
        channel = self._channels.get(self.key)
        pace = UNPACED if channel is None else channel.pace
        if self._pace is not pace:
            if channel is None or pace == UNPACED:
                self._pacer = None
            elif self._pacer is None or self._pace != pace:
                self._pacer = Pacer(pace, channel.is_group, time.monotonic)
            self._pace = pace
        return self._pacer

    def _chat_step_ms(self) -> int:
        pacer = self._paced()
        if pacer is None or not pacer.pace.per_chat_s:
            return 0
        return math.ceil(1000 / pacer.pace.per_chat_s)

    def _monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()


class OutboundGates:
    """The gates of all channels, by channel key."""

    def __init__(
        self,
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
        self._clock = clock
        self._jobs = jobs
        self._channels = channels
        self._new_gate = partial(
            OutboundGate,
            clock=clock,
            db=db,
            jobs=jobs,
            channels=channels,
            states=states,
            outages=outages,
            metrics=metrics,
            settings=settings,
        )
        self._gates: dict[str, OutboundGate] = {}

    def __getitem__(self, key: str) -> OutboundGate:
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = self._new_gate(key)
        return gate

    @asynccontextmanager
    async def batch(self, ctx: JobContext, jobs: Sequence[Job]) -> AsyncIterator[OutboundBatch]:
        """The jobs of one lane, with their channel, which is not closed while the block runs.

        Starts when earlier batches with the same recipients have ended. Jobs that would overtake others have
        been rescheduled, and are not in the batch.
        """
        key = channel_of(jobs[0].lane)
        gate = self[key]
        async with (
            self._channels.borrow(key) as channel,
            gate.turns.acquire(map(receiver_of, jobs)),
        ):
            try:
                left = await gate.defer_overtaking(ctx, jobs)
                repeatable = channel is not None and channel.capabilities.repeatable
                yield OutboundBatch(ctx, channel, gate, left, repeatable)
            except Exception:
                gate.on_failed(jobs)
                raise

    def changed(self, key: str, *, stopped: bool) -> None:
        """Notifies the gate and the runner of a change that was committed in this process."""
        self[key].changed(stopped=stopped)
        self._jobs.wake(lane_of(key), self._clock.now_ms())

    def outage_changed(self, key: str) -> None:
        """Notifies them of a change of the outage of the channel's platform."""
        self[key].outage_changed()
        self._jobs.wake(lane_of(key), self._clock.now_ms())

    @property
    def lanes(self) -> LaneSpec:
        """The lanes of all channels. A bot with rate limits or a slow platform has more, smaller batches:
        see `OutboundGate.capacity`."""
        return LaneSpec(LANE, concurrency=BATCHES, batch=BATCH, exclusive=True, gate=self.gate_of)

    def gate_of(self, lane: str) -> OutboundGate:
        """The gate of a lane `channel:<key>`."""
        return self[channel_of(lane)]
