"""Sends a mailing by one bot: a job that claims recipients and records their outcomes.

The recipients in flight are stored in one row before their calls start. If the process dies, exactly they
are `unknown`: nobody is sent to twice silently (docs/decisions/0032-mailings.md).
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.lanes import channel_of
from msgsvc_core.channels.outbound.concurrency import BULK
from msgsvc_core.channels.outbound.gate import MAX_IN_FLIGHT, OutboundGate
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx, retry_on_deadlock
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, LeaseLost, OnDead
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import ledger, pace, store
from msgsvc_core.mailings.claim_window import CHECK_S, ClaimWindow
from msgsvc_core.mailings.deliveries import RecipientDelivery, RecipientSender, SendContext
from msgsvc_core.mailings.models import LockedShard, Mailing, MailingShard
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.recipient_claims import RecipientClaims
from msgsvc_core.mailings.service import SEND_JOB, Mailings
from msgsvc_core.mailings.shard_calls import ShardCalls
from msgsvc_core.mailings.shared_files import SharedFiles

log = structlog.get_logger(__name__)

#: Maximum recipients in flight, of all mailings of a channel together: as many calls as a lane makes
#: otherwise. With twice as many a broadcast was no quicker, and twice as many would be `unknown` after a
#: crash. Fewer if the platform is slow.
MAX_RECIPIENTS_IN_FLIGHT = int(MAX_IN_FLIGHT * BULK)

#: Seconds after which a shard releases its place in the lane: other jobs may be waiting or due.
RUN_S = 1.0


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
        self._clock = sender.clock
        self._outcomes = sender.outcomes
        self._mailings = sender.mailings
        self._recipients = sender.recipients
        self._ctx = ctx
        self._job = job
        self._channel = channel
        self._gate = gate
        #: The key of the mailing.
        self._key = job.project_id or "", str(job.payload["job_id"])
        self._window = ClaimWindow(gate, limit)
        self._calls = ShardCalls(recipients=sender.recipients, gate=gate)
        self._claims = RecipientClaims(
            clock=sender.clock,
            recipients=sender.recipients,
            outcomes=sender.outcomes,
            job=job,
            gate=gate,
        )
        self._files = SharedFiles(
            clock=sender.clock,
            recipients=sender.recipients,
            retries=sender.retries,
            gate=gate,
            job=job,
        )
        #: Whether claiming has ended, and when to continue, in Unix milliseconds.
        self._is_stopping = False
        self._resume_at_ms: int | None = None
        self._is_first = True
        self._has_progressed = False
        #: An error before the calls of the last claimed recipients.
        self._error: Exception | None = None

    async def run(self) -> None:
        ends_s = time.monotonic() + RUN_S
        try:
            await self._check_files()
            while True:
                await self._step()
                if self._is_stopping and not self._calls.in_flight:
                    break
                await self._wait()
                if time.monotonic() >= ends_s or self._ctx.stopping or self._gate.closed:
                    self._is_stopping = True
        except LeaseLost:
            await self._calls.wait_for_all()
            await retry_on_deadlock(self._record_late)
            raise
        finally:
            # A call that continued during the next run would be unknown to it.
            await self._calls.wait_for_all()
            self._window.set_in_flight(0)
        if self._error is not None:
            raise self._error
        await self._finish()

    def _stop_until(self, resume_at_ms: int) -> None:
        """Ends the run when those in flight have ended; the next starts then."""
        self._is_stopping, self._resume_at_ms = True, resume_at_ms

    async def _check_files(self) -> None:
        """No recipient is in flight before the checks of shared files have a final result."""
        async with self._ctx.reading() as tx:
            mailing = await store.find(tx, *self._key)
        if mailing is not None and (retry_at_ms := await self._files.check(mailing)) is not None:
            self._stop_until(retry_at_ms)

    async def _record_late(self) -> None:
        """Records the recipients sent to, although another runner has taken over the shard."""
        async with self._ctx.transaction() as tx:
            mailing = await store.lock(tx, *self._key)
            if mailing is None:
                return
            late = await self._outcomes.settle_late(self._context(mailing), tx, self._calls.ended)
        if late:
            log.warning("outcomes_came_late", channel=self._gate.key, count=late)

    async def _wait(self) -> None:
        """Waits until there is something to record, or the mailing should be checked."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s()):
                await self._window.until_slots()
                while not self._has_work:
                    await self._calls.wait_for_progress()

    @property
    def _has_work(self) -> bool:
        if self._is_stopping:
            return not self._calls.are_running
        if self._window.next_due_ms is not None:
            return False
        return self._calls.has_group or self._window.has_room(len(self._calls.in_flight))

    def _wait_s(self) -> float:
        return CHECK_S if self._is_stopping else self._window.wait_s(self._clock.now_ms())

    async def _step(self) -> None:
        """Records what has ended, and claims more recipients, in one transaction."""
        ended = self._calls.take_ended()
        # Only this process knows these outcomes: if lost, they would be unknown.
        try:
            step = await retry_on_deadlock(partial(self._record, ended))
        except LeaseLost:
            self._calls.ended = [*ended, *self._calls.ended]
            raise
        if step is None:
            # The project was deleted, and nothing of it is kept.
            self._is_stopping = True
            return
        context, claimed = step
        self._is_first = False
        self._has_progressed = self._has_progressed or bool(ended)
        self._calls.add(claimed)
        self._window.set_in_flight(len(self._calls.in_flight))
        await self._start_calls(context, claimed)

    async def _record(
        self, ended: Sequence[RecipientDelivery]
    ) -> tuple[SendContext, list[RecipientDelivery]] | None:
        """The transaction of a step; returns those in flight after it, or None if the mailing does not
        exist."""
        self._window.recording(len(ended), len(self._calls.in_flight))
        async with self._ctx.holding(self._job) as tx:
            self._calls.shares_loop = tx.dialect == "postgresql"
            locked = await self._lock(tx)
            if locked is None:
                return None
            mailing, shard = locked.mailing, locked.shard.of_stage(locked.mailing)
            context = self._context(mailing)
            if self._is_first:
                await self._outcomes.settle_left(context, tx, self._job)
            recorded = await self._outcomes.record(context, tx, ended)
            self._claims.has_retries = self._claims.has_retries or recorded.has_retries
            if ended and not self._has_progressed:
                # However often a process dies, as long as each makes some of the calls.
                await self._ctx.progressed(tx, self._job)
            claimed, walked_to = await self._claim(context, tx, shard)
            # After the last query: what is inserted and counted is one round trip on PostgreSQL.
            await self._outcomes.publish(context, tx, recorded)
            in_flight = [*self._calls.in_flight, *(each.subscriber_id for each in claimed)]
            now = replace(shard, walked_to=walked_to, in_flight=in_flight)
            if now != locked.shard or (self._is_first and locked.shard.in_flight):
                await store.set_shard(tx, *mailing.key, now)
        return context, claimed

    async def _lock(self, tx: Tx) -> LockedShard | None:
        """Locks the mailing and its shard; pauses it if its project is disabled."""
        locked = await store.lock_shard(tx, *self._key, self._gate.key)
        if locked is None or locked.is_project_active or locked.mailing.status != "running":
            return locked
        await store.pause_if_disabled(tx, *self._key, self._clock.now_ms())
        return await store.lock_shard(tx, *self._key, self._gate.key)

    def _context(self, mailing: Mailing) -> SendContext:
        return SendContext(mailing, self._channel, self._gate, self._files.failures)

    async def _claim(
        self, context: SendContext, tx: Tx, shard: MailingShard
    ) -> tuple[list[RecipientDelivery], str]:
        """The next recipients, who are in flight once `tx` is committed, and the position of the shard
        then."""
        mailing, now_ms = context.mailing, self._clock.now_ms()
        limit = await self._claimable(tx, mailing, now_ms)
        if limit <= 0:
            return [], shard.walked_to
        claimed = await self._claims.claim(context, tx, shard, limit, now_ms, self._calls.in_flight)
        if mailing.per_minute is not None and claimed.deliveries:
            due = pace.after(mailing, now_ms, len(claimed.deliveries))
            await store.set_next(tx, mailing, due)
        self._window.claimed(claimed.count)
        if not claimed.count:
            # Recipients in flight may still be retried; the end of the run checks that.
            self._is_stopping = True
        return claimed.deliveries, claimed.walked_to

    async def _claimable(self, tx: Tx, mailing: Mailing, now_ms: int) -> int:
        """How many recipients may be claimed now. Ends the run if that will not change soon."""
        self._window.reset()
        if mailing.status != "running":
            self._is_stopping = True
        if self._is_stopping:
            return 0
        if await self._mailings.must_yield(tx, self._job.lane):
            self._stop_until(now_ms)
            return 0
        claimable = self._window.claimable(mailing, now_ms, len(self._calls.in_flight))
        self._calls.group_size = self._window.group_size
        if claimable.resume_at_ms is not None:
            self._stop_until(claimable.resume_at_ms)
        return claimable.count

    async def _start_calls(
        self, context: SendContext, claimed: Sequence[RecipientDelivery]
    ) -> None:
        """Starts the calls of recipients who were just claimed."""
        try:
            sendable = await self._recipients.prepare(context, claimed)
        except Exception as error:  # noqa: BLE001 - raised when they have been put back
            # None of them was called, so none may end as `unknown`.
            for delivery in claimed:
                delivery.delay_ms = 0
            self._calls.ended += claimed
            self._is_stopping, self._error = True, error
            return
        if waits_ms := [each.delay_ms for each in claimed if each.delay_ms is not None]:
            # Their files' host is slow: more recipients would only wait too.
            self._stop_until(self._clock.now_ms() + min(waits_ms))
        is_sent = set(map(id, sendable))
        self._calls.ended += [delivery for delivery in claimed if id(delivery) not in is_sent]
        self._gate.reserve_turns([delivery.job for delivery in sendable])
        # With a pace they are spread until the next check: all at once, they would delay everything else in
        # the process.
        is_paced = self._window.next_due_ms is not None
        step_s = self._wait_s() / max(1, len(sendable)) if is_paced else 0.0
        self._calls.start(context, sendable, step_s)

    # ---- the end of the run ---------------------------------------------------------------------

    async def _finish(self) -> None:
        """Reschedules the shard or ends it, and the mailing with the last one."""
        ctx, job = self._ctx, self._job
        # The same lock order as in `resume` and `cancel`: the mailing before the job of its shard.
        async with ctx.completing(job, first=lambda tx: store.lock(tx, *self._key)) as tx:
            locked = await store.lock_shard(tx, *self._key, self._gate.key)
            if locked is None:
                return
            mailing = locked.mailing
            if mailing.status == "cancelled":
                await self._mailings.finish(tx, *mailing.key, "cancelled")
            elif mailing.status == "running":
                await self._continue(tx, mailing, locked.shard.of_stage(mailing))

    async def _continue(self, tx: Tx, mailing: Mailing, shard: MailingShard) -> None:
        again_ms = self._resume_at_ms or 0
        if not await ledger.has_next(tx, mailing, shard):
            next_ms = await ledger.next_retry_ms(tx, mailing, self._gate.key)
            if next_ms is None:
                await store.set_shard(tx, *mailing.key, replace(shard, is_done=True))
                await self._mailings.complete(tx, mailing)
                return
            again_ms = max(again_ms, next_ms)
        if mailing.per_minute is not None:
            again_ms = max(again_ms, pace.due_ms(mailing))
        run_at_ms = max(self._clock.now_ms(), again_ms)
        await self._mailings.continue_shard(
            tx, mailing, self._gate.key, run_at_ms, self._files.tries
        )
