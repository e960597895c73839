"""Sends a mailing by one bot: a job that claims recipients and records their outcomes.

The recipients in flight are stored in one row before their calls start. If the process dies, exactly they
are `unknown`: nobody is sent to twice silently (docs/decisions/0032-mailings.md).
"""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from msgsvc_core.channels.concurrency import BULK
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError
from msgsvc_core.channels.lanes import channel_of
from msgsvc_core.channels.outbound import MAX_IN_FLIGHT, OutboundGate, OutboundGates
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.send_attempt import RetryPolicy, SendAttempt
from msgsvc_core.db import Tx, retry_on_deadlock
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, LeaseLost, OnDead
from msgsvc_core.kernel.aio import BATCH, yield_every
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import ledger, pace, store
from msgsvc_core.mailings.content import read_column
from msgsvc_core.mailings.deliveries import (
    RecipientDelivery,
    RecipientSender,
    SendContext,
    obstacle,
)
from msgsvc_core.mailings.ledger import DueRecipient
from msgsvc_core.mailings.models import LockedShard, Mailing, MailingShard
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.route_moves import step_obstacle
from msgsvc_core.mailings.service import SEND_JOB, Mailings
from msgsvc_core.subscribers.models import Subscriber

log = structlog.get_logger(__name__)

#: Maximum recipients in flight, of all mailings of a channel together: as many calls as a lane makes
#: otherwise. With twice as many a broadcast was no quicker, and twice as many would be `unknown` after a
#: crash. Fewer if the platform is slow.
MAX_RECIPIENTS_IN_FLIGHT = int(MAX_IN_FLIGHT * BULK)

#: The share of those in flight that are claimed, and recorded, together, while the others' calls are in
#: progress. If all were claimed at once, all would end at once and wait for the database.
GROUP_SHARE = 0.5

#: Calls that start per turn of the event loop if the database's responses arrive through it too. Of a hundred
#: calls that start together, all responses arrive together, a database response waits behind them, and during
#: the next statement there are no calls left to make. Lanes, whose batches make fewer statements, lose
#: nothing with `BATCH`.
SHARED_LOOP_BATCH = 5

#: Seconds after which a shard releases its place in the lane: other jobs may be waiting or due.
RUN_S = 1.0

#: Seconds between checks of the mailing while the platform is slow: it may have been paused.
CHECK_S = 0.25


class MailingSender:
    """The job that sends a mailing by one bot."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        gates: OutboundGates,
        recipients: RecipientSender,
        outcomes: MailingOutcomes,
        mailings: Mailings,
        retries: RetryPolicy,
        on_dead: OnDead,
    ) -> None:
        self.clock = clock
        self.recipients = recipients
        self.outcomes = outcomes
        self.mailings = mailings
        self.retries = retries
        self._channels = channels
        self._gates = gates
        self._on_dead = on_dead

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            SEND_JOB,
            self.run,
            max_attempts=20,
            on_dead=self._on_dead,
            inline=True,
            own_trace=True,
            sends="broadcasts in progress",
            on_withdrawn=self._withdraw,
        )

    async def _withdraw(self, tx: Tx, job: Job) -> None:
        """It is paused, so that somebody looks whether the original has sent it."""
        await self._on_dead(tx, job, "")

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Runs the shards of a batch concurrently; they share the limit in flight."""
        key = channel_of(jobs[0].lane)
        gate = self._gates[key]
        # Their calls are counted one by one.
        gate.ended(jobs)
        limit = max(1, MAX_RECIPIENTS_IN_FLIGHT // len(jobs))
        async with self._channels.borrow(key) as channel:
            runs = [ShardRun(self, ctx, job, channel, gate, limit) for job in jobs]
            ended = await asyncio.gather(*(run.run() for run in runs), return_exceptions=True)
        for failure in ended:
            if failure is not None:
                raise failure


class ShardRun:
    """One run of the job: about a second of a mailing's calls."""

    def __init__(
        self,
        sender: MailingSender,
        ctx: JobContext,
        job: Job,
        channel: Channel | None,
        gate: OutboundGate,
        limit: int,
    ) -> None:
        self._sender = sender
        self._clock = sender.clock
        self._outcomes = sender.outcomes
        self._ctx = ctx
        self._job = job
        self._channel = channel
        self._gate = gate
        self._bot = gate.key
        #: The key of the mailing.
        self._key = job.project_id or "", str(job.payload["job_id"])
        #: Maximum in flight, of this mailing alone, if the platform is quick enough; and how many are claimed
        #: together.
        self._max_limit = limit
        self._limit = self._group_size = 1
        self._slots = gate.concurrency.slots(bulk=True)
        #: Whether no recipient could be claimed because other mailings of the channel use the limit in
        #: flight.
        self._waits_for_slots = False
        #: Number of outcomes that are being written: their places are free afterwards.
        self._recording = 0
        #: The recipients in flight, by id: their call is in progress, or its outcome not written yet.
        self._in_flight: dict[str, RecipientDelivery] = {}
        self._ended: list[RecipientDelivery] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._progress = asyncio.Event()
        #: Whether claiming has ended, and when to continue, in Unix milliseconds.
        self._is_stopping = False
        self._resume_at_ms: int | None = None
        self._is_first = True
        self._has_progressed = False
        #: Whether there may be retries to claim; only this run creates them.
        self._has_retries = True
        #: Whether a full group was claimed, so that there may be more.
        self._claimed_full_group = False
        #: When the next recipients are due by the mailing's pace, if that is soon, in Unix milliseconds.
        self._next_due_ms: int | None = None
        #: Why no recipient can get a content, e.g. a file that no messenger accepts.
        self._failures: dict[str, DeliveryError] = {}
        #: An error before the calls of the last claimed recipients.
        self._error: Exception | None = None
        self._tries = 0
        #: Whether the database's responses arrive through the event loop, as those of the calls.
        self._shares_loop = False

    async def run(self) -> None:
        ends_s = time.monotonic() + RUN_S
        try:
            await self._check_files()
            while True:
                await self._step()
                if self._is_stopping and not self._in_flight:
                    break
                await self._wait()
                if time.monotonic() >= ends_s or self._ctx.stopping or self._gate.closed:
                    self._is_stopping = True
        except LeaseLost:
            await self._calls_ended()
            await retry_on_deadlock(self._record_late)
            raise
        finally:
            # A call that continued during the next run would be unknown to it.
            await self._calls_ended()
            self._slots.set(0)
        if self._error is not None:
            raise self._error
        await self._finish()

    def _stop_until(self, resume_at_ms: int) -> None:
        """Ends the run when those in flight have ended; the next starts then."""
        self._is_stopping, self._resume_at_ms = True, resume_at_ms

    async def _calls_ended(self) -> None:
        while self._calls:
            await asyncio.gather(*self._calls, return_exceptions=True)

    async def _record_late(self) -> None:
        """Records the recipients sent to, although another runner has taken over the shard."""
        async with self._ctx.transaction() as tx:
            mailing = await store.lock(tx, *self._key)
            if mailing is None:
                return
            late = await self._outcomes.settle_late(self._context(mailing), tx, self._ended)
        if late:
            log.warning("outcomes_came_late", channel=self._bot, count=late)

    async def _wait(self) -> None:
        """Waits until there is something to record, or the mailing should be checked."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s()):
                while self._waits_for_slots and self._slots.available <= 0:
                    await self._gate.concurrency.until_changed()
                while not self._has_work:
                    self._progress.clear()
                    await self._progress.wait()

    @property
    def _has_work(self) -> bool:
        if self._is_stopping:
            return not self._calls
        if self._next_due_ms is not None:
            return False
        has_room = (
            self._claimed_full_group and len(self._in_flight) + self._group_size <= self._limit
        )
        return has_room or not self._calls or len(self._ended) >= self._group_size

    def _wait_s(self) -> float:
        if self._is_stopping:
            return CHECK_S
        now_ms, wait_s = self._clock.now_ms(), CHECK_S
        if self._next_due_ms is not None:
            wait_s = max(0.0, (self._next_due_ms - now_ms) / 1000)
        capacity = self._gate.paced_capacity()
        return (
            wait_s
            if capacity is None
            else min(wait_s, max(0.02, (capacity.next_check_ms - now_ms) / 1000))
        )

    async def _step(self) -> None:
        """Records what has ended, and claims more recipients, in one transaction."""
        ended, self._ended = self._ended, []
        for delivery in ended:
            del self._in_flight[delivery.subscriber_id]
        # Only this process knows these outcomes: if lost, they would be unknown.
        try:
            step = await retry_on_deadlock(partial(self._record, ended))
        except LeaseLost:
            self._ended = [*ended, *self._ended]
            raise
        if step is None:
            # The project was deleted, and nothing of it is kept.
            self._is_stopping = True
            return
        context, claimed = step
        self._is_first = False
        self._has_progressed = self._has_progressed or bool(ended)
        self._in_flight.update((delivery.subscriber_id, delivery) for delivery in claimed)
        self._slots.set(len(self._in_flight))
        await self._start_calls(context, claimed)

    async def _record(
        self, ended: Sequence[RecipientDelivery]
    ) -> tuple[SendContext, list[RecipientDelivery]] | None:
        """The transaction of a step; returns those in flight after it, or None if the mailing does not
        exist."""
        self._recording = len(ended)
        self._slots.set(len(self._in_flight) + self._recording)
        async with self._ctx.holding(self._job) as tx:
            self._shares_loop = tx.dialect == "postgresql"
            locked = await self._lock(tx)
            if locked is None:
                return None
            mailing, shard = locked.mailing, locked.shard.of_stage(locked.mailing)
            context = self._context(mailing)
            if self._is_first:
                await self._outcomes.settle_left(context, tx, self._job)
            recorded = await self._outcomes.record(context, tx, ended)
            self._has_retries = self._has_retries or recorded.has_retries
            if ended and not self._has_progressed:
                # However often a process dies, as long as each makes some of the calls.
                await self._ctx.progressed(tx, self._job)
            claimed, walked_to = await self._claim(context, tx, shard)
            # After the last query: what is inserted and counted is one round trip on PostgreSQL.
            await self._outcomes.publish(context, tx, recorded)
            in_flight = [*self._in_flight, *(delivery.subscriber_id for delivery in claimed)]
            now = replace(shard, walked_to=walked_to, in_flight=in_flight)
            if now != locked.shard or (self._is_first and locked.shard.in_flight):
                await store.set_shard(tx, *mailing.key, now)
        return context, claimed

    async def _lock(self, tx: Tx) -> LockedShard | None:
        """Locks the mailing and its shard; pauses it if its project is disabled."""
        locked = await store.lock_shard(tx, *self._key, self._bot)
        if locked is None or locked.is_project_active or locked.mailing.status != "running":
            return locked
        await store.pause_if_disabled(tx, *self._key, self._clock.now_ms())
        return await store.lock_shard(tx, *self._key, self._bot)

    def _context(self, mailing: Mailing) -> SendContext:
        return SendContext(mailing, self._channel, self._gate, self._failures)

    # ---- claiming recipients --------------------------------------------------------------------

    async def _claim(
        self, context: SendContext, tx: Tx, shard: MailingShard
    ) -> tuple[list[RecipientDelivery], str]:
        """The next recipients, who are in flight once `tx` is committed, and the position of the shard
        then."""
        mailing, now_ms = context.mailing, self._clock.now_ms()
        limit, self._claimed_full_group, self._next_due_ms = 0, False, None
        self._waits_for_slots = False
        if mailing.status != "running":
            self._is_stopping = True
        elif not self._is_stopping and await self._sender.mailings.must_yield(tx, self._job.lane):
            self._stop_until(now_ms)
        elif not self._is_stopping:
            limit = self._claimable(mailing, now_ms)
        if limit <= 0:
            return [], shard.walked_to
        retries = await self._due_retries(tx, mailing, now_ms, limit)
        recipients = self._sender.recipients
        found = await recipients.find_many(
            tx, mailing.project_id, [each.subscriber_id for each in retries]
        )
        new = await recipients.find_next(tx, mailing, shard, limit - len(retries))
        found |= {each.subscriber_id: each for each in new}
        claimed = [*retries, *(DueRecipient(each.subscriber_id) for each in new)]
        if mailing.experiment is not None:
            claimed = await self._with_variants(tx, mailing, claimed)
        deliveries = await self._deliveries(context, tx, claimed, found)
        if mailing.per_minute is not None and deliveries:
            await store.set_next(tx, mailing, pace.after(mailing, now_ms, len(deliveries)))
        self._claimed_full_group = len(retries) + len(new) == self._group_size
        if not retries and not new:
            # Recipients in flight may still be retried; the end of the run checks that.
            self._is_stopping = True
        return deliveries, new[-1].subscriber_id if new else shard.walked_to

    async def _with_variants(
        self, tx: Tx, mailing: Mailing, claimed: Sequence[DueRecipient]
    ) -> list[DueRecipient]:
        """Recipients with the variants that they get. In the second stage, whoever has surely got none yet
        gets the winner."""
        ids = [each.subscriber_id for each in claimed]
        variants = await ledger.find_variants(tx, *mailing.key, ids)
        if mailing.stage == "rest":
            free = [each.subscriber_id for each in claimed if not each.in_doubt]
            left = [each for each in free if variants.pop(each, None) is not None]
            await ledger.set_variants(tx, mailing, dict.fromkeys(left))
        return [replace(each, variant=variants.get(each.subscriber_id)) for each in claimed]

    async def _due_retries(
        self, tx: Tx, mailing: Mailing, now_ms: int, limit: int
    ) -> list[DueRecipient]:
        """Claims recipients whose retry is due."""
        # With a route also the runs of other shards create them.
        if not self._has_retries and mailing.route_id is None:
            return []
        retries = await ledger.due_retries(tx, mailing, self._bot, now_ms, limit)
        if retries:
            await ledger.claim_retries(tx, mailing, [each.subscriber_id for each in retries])
        else:
            next_ms = await ledger.next_retry_ms(tx, mailing, self._bot)
            self._has_retries = next_ms is not None
        return retries

    def _claimable(self, mailing: Mailing, now_ms: int) -> int:
        """How many recipients may be claimed now. Ends the run if that will not change soon."""
        due, look_ms = self._limit, None
        if mailing.per_minute is not None:
            due, look_ms = pace.capacity(mailing, now_ms), pace.check_interval_ms(mailing)
            if due <= 0 and look_ms is None:
                self._stop_until(pace.retry_at_ms(mailing, now_ms))
                return 0
        self._limit = min(self._max_limit, self._gate.concurrency.bulk_limit)
        self._group_size = max(1, int(self._limit * GROUP_SHARE))
        free = min(self._group_size, self._limit - len(self._in_flight))
        capacity = self._gate.paced_capacity()
        if capacity is not None:
            free = min(free, capacity.jobs)
            if free <= 0 and not self._in_flight:
                # The lane's gate knows when to continue.
                self._stop_until(now_ms)
        slots = self._slots.available + self._recording
        if slots < free:
            self._waits_for_slots = slots <= 0 and not self._in_flight
            free = slots
        if look_ms is not None and due <= free:
            self._next_due_ms = now_ms + look_ms
        count = min(free, due)
        # Counted before they are in flight: other mailings of the channel claim recipients meanwhile.
        self._slots.set(max(self._slots.count, len(self._in_flight) + count))
        return count

    async def _deliveries(
        self,
        context: SendContext,
        tx: Tx,
        claimed: Sequence[DueRecipient],
        found: Mapping[str, Subscriber],
    ) -> list[RecipientDelivery]:
        """Deliveries to those of `claimed` who get one; the others are skipped."""
        now_ms = self._clock.now_ms()
        deliveries: list[RecipientDelivery] = []
        skipped: list[tuple[str, str]] = []
        #: Recipients who must not be sent to any more, and may have got the message before.
        doubtful: list[RecipientDelivery] = []
        is_paced = self._gate.paced_capacity() is not None
        for each in claimed:
            subscriber_id = each.subscriber_id
            subscriber = found.get(subscriber_id)
            if (why := _obstacle(context, subscriber, now_ms)) is not None:
                if each.in_doubt and subscriber is not None:
                    doubtful.append(
                        RecipientDelivery(
                            self._job,
                            subscriber,
                            attempts=each.attempts + 1,
                            variant=each.variant,
                        )
                    )
                else:
                    skipped.append((subscriber_id, why))
                continue
            assert subscriber is not None, "who is missing is not subscribed"
            job = self._job
            if is_paced:
                job = replace(job, job_id=f"{job.job_id}:{subscriber_id}")
            deliveries.append(
                RecipientDelivery(
                    job,
                    subscriber,
                    attempts=each.attempts + 1,
                    rate_limited_since_ms=each.refused_from_ms,
                    was_in_doubt=each.in_doubt,
                    variant=each.variant,
                    began_ms=now_ms if each.began_ms is None else each.began_ms,
                )
            )
        channel = "" if context.channel is None else context.channel.name
        await self._outcomes.skip(context, tx, skipped, channel)
        await self._outcomes.give_up(context, tx, doubtful)
        return deliveries

    # ---- calls ----------------------------------------------------------------------------------

    async def _start_calls(
        self, context: SendContext, claimed: Sequence[RecipientDelivery]
    ) -> None:
        """Starts the calls of recipients who were just claimed."""
        try:
            sendable = await self._sender.recipients.prepare(context, claimed)
        except Exception as error:  # noqa: BLE001 - raised when they have been put back
            # None of them was called, so none may end as `unknown`.
            for delivery in claimed:
                delivery.delay_ms = 0
            self._ended += claimed
            self._is_stopping, self._error = True, error
            return
        if waits_ms := [each.delay_ms for each in claimed if each.delay_ms is not None]:
            # Their files' host is slow: more recipients would only wait too.
            self._stop_until(self._clock.now_ms() + min(waits_ms))
        is_sent = set(map(id, sendable))
        self._ended += [delivery for delivery in claimed if id(delivery) not in is_sent]
        self._gate.reserve_turns([delivery.job for delivery in sendable])
        # With a pace they are spread until the next check: all at once, they would delay everything else in
        # the process.
        step_s = 0.0 if self._next_due_ms is None else self._wait_s() / max(1, len(sendable))
        self._spawn(self._send_all(context, sendable, step_s))

    async def _send_all(
        self, context: SendContext, deliveries: Sequence[RecipientDelivery], step_s: float
    ) -> None:
        batch = SHARED_LOOP_BATCH if self._shares_loop else BATCH
        async for number, delivery in yield_every(enumerate(deliveries), batch):
            self._spawn(self._send(context, delivery, number * step_s))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._call_ended)

    async def _send(
        self, context: SendContext, delivery: RecipientDelivery, after_s: float
    ) -> None:
        try:
            if after_s > 0:
                await asyncio.sleep(after_s)
            await self._sender.recipients.send(context, delivery)
        finally:
            self._gate.ended([delivery.job])
            self._ended.append(delivery)

    def _call_ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        if not self._calls or len(self._ended) >= self._group_size:
            self._progress.set()

    # ---- the shared file ------------------------------------------------------------------------

    async def _check_files(self) -> None:
        """No recipient is in flight before the checks of shared files have a final result."""
        async with self._ctx.reading() as tx:
            mailing = await store.find(tx, *self._key)
        if mailing is None:
            return
        contents = [mailing.content_of(None)]
        if mailing.stage != "rest":
            contents += [each["content"] for each in mailing.variants]
        for content in dict.fromkeys(contents):
            await self._check_file(content)

    async def _check_file(self, content: str) -> None:
        job = self._job
        check = await self._sender.recipients.check_shared(read_column(content))
        if check is None or (check.done and check.failure is None):
            return
        now_ms = self._clock.now_ms()
        if check.failure is None:
            self._stop_until(now_ms + round(check.retry_in_s * 1000))
            return
        self._tries = job.payload["tries"] + 1
        attempt = SendAttempt(job, attempts=self._tries)
        attempt.failure = check.failure
        outcome = attempt.outcome(self._gate, self._sender.retries, now_ms, repeatable=True)
        if outcome.is_final:
            self._failures[content] = check.failure
        else:
            self._stop_until(now_ms if outcome.retry_at_ms is None else outcome.retry_at_ms)

    # ---- the end of the run ---------------------------------------------------------------------

    async def _finish(self) -> None:
        """Reschedules the shard or ends it, and the mailing with the last one."""
        ctx, job = self._ctx, self._job
        # The same lock order as in `resume` and `cancel`: the mailing before the job of its shard.
        async with ctx.completing(job, first=lambda tx: store.lock(tx, *self._key)) as tx:
            locked = await store.lock_shard(tx, *self._key, self._bot)
            if locked is None:
                return
            mailing = locked.mailing
            if mailing.status == "cancelled":
                await self._sender.mailings.finish(tx, *mailing.key, "cancelled")
            elif mailing.status == "running":
                await self._continue(tx, mailing, locked.shard.of_stage(mailing))

    async def _continue(self, tx: Tx, mailing: Mailing, shard: MailingShard) -> None:
        again_ms = self._resume_at_ms or 0
        if not await ledger.has_next(tx, mailing, shard):
            next_ms = await ledger.next_retry_ms(tx, mailing, self._bot)
            if next_ms is None:
                await store.set_shard(tx, *mailing.key, replace(shard, is_done=True))
                await self._sender.mailings.complete(tx, mailing)
                return
            again_ms = max(again_ms, next_ms)
        if mailing.per_minute is not None:
            again_ms = max(again_ms, pace.due_ms(mailing))
        run_at_ms = max(self._clock.now_ms(), again_ms)
        await self._sender.mailings.continue_shard(tx, mailing, self._bot, run_at_ms, self._tries)


def _obstacle(context: SendContext, subscriber: Subscriber | None, now_ms: int) -> str | None:
    """Why a recipient is skipped, or goes on along the route; None if not."""
    why = obstacle(context, subscriber, now_ms)
    if why is not None or subscriber is None:
        return why
    return step_obstacle(context.mailing, subscriber.channel, now_ms)
