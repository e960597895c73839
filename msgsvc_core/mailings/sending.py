"""Sends a mailing by one bot: a job that claims recipients and records their outcomes.

The recipients in flight are stored in one row before their calls start. If the process dies, exactly they
are `unknown`: nobody is sent to twice silently (docs/decisions/0032-mass-sends.md).
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from msgsvc_core.channels.concurrency import BULK
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outbound import MOST_IN_FLIGHT, OutboundGate, OutboundGates
from msgsvc_core.channels.outbox import channel_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx, retry_on_deadlock
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, LeaseLost, OnDead
from msgsvc_core.kernel.aio import BATCH, yield_every
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import ledger, pace, store
from msgsvc_core.mailings.content import read_column
from msgsvc_core.mailings.deliveries import Letters, RecipientDelivery, SendContext, obstacle
from msgsvc_core.mailings.ledger import Tried
from msgsvc_core.mailings.models import LockedShard, Mailing, MailingShard
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.service import SEND_JOB, Mailings
from msgsvc_core.messages.delivery import BACKOFF
from msgsvc_core.subscribers.service import Subscribers

log = structlog.get_logger(__name__)

#: People who are in hand at once at most, all mailings of a channel together: as many calls as a lane has
#: under way otherwise. With twice as many a broadcast was no quicker, and twice as many would be `unknown`
#: after a kill. Fewer where the platform is slow.
MOST_IN_HAND = int(MOST_IN_FLIGHT * BULK)

#: The part of those in hand who are taken, and whose outcomes are written, together. The others' calls
#: are under way meanwhile: were all taken at once, all would end at once, and wait for the database.
TOGETHER = 0.5

#: Calls that begin in one turn of the event loop where the database's answers come through it as well. Of
#: a hundred that begin together all answers come together: the answer to a statement waits behind them,
#: and while the next statement's is awaited no call is left to be made. Lanes, whose batches make fewer
#: statements, lose nothing with `BATCH` there.
A_TURN_WITH_STATEMENTS = 5

#: Seconds after which a way gives its place in the lane back: others may wait for it, or be due.
TURN_S = 1.0

#: Seconds between looks at the mailing while the platform takes its time: it may have been paused.
LOOK_S = 0.25


class MailingSender:
    """The job that sends a mailing by one bot."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        lines: OutboundGates,
        subscribers: Subscribers,
        letters: Letters,
        outcomes: MailingOutcomes,
        mailings: Mailings,
        attempts: int,
        on_dead: OnDead,
    ) -> None:
        self.clock = clock
        self.subscribers = subscribers
        self.letters = letters
        self.outcomes = outcomes
        self.mailings = mailings
        #: How often one message is tried.
        self.attempts = attempts
        self._channels = channels
        self._lines = lines
        self._on_dead = on_dead

    @property
    def spec(self) -> JobSpec:
        return JobSpec(SEND_JOB, self.run, max_attempts=20, on_dead=self._on_dead, inline=True)

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Goes on with the mailings of a batch, side by side; they share what may be in hand."""
        key = channel_of(jobs[0].lane)
        line = self._lines[key]
        # Their calls are reckoned one by one.
        line.ended(jobs)
        most = max(1, MOST_IN_HAND // len(jobs))
        async with self._channels.borrow(key) as channel:
            turns = [_Turn(self, ctx, job, channel, line, most) for job in jobs]
            ended = await asyncio.gather(*(turn.run() for turn in turns), return_exceptions=True)
        for failure in ended:
            if failure is not None:
                raise failure


class _Turn:
    """One run of the job: about a second of a mailing's calls."""

    def __init__(
        self,
        sender: MailingSender,
        ctx: JobContext,
        job: Job,
        channel: Channel | None,
        line: OutboundGate,
        most: int,
    ) -> None:
        self._sender = sender
        self._clock = sender.clock
        self._outcomes = sender.outcomes
        self._ctx = ctx
        self._job = job
        self._channel = channel
        self._line = line
        self._bot = line.key
        #: The mailing's.
        self._key = job.project_id or "", str(job.payload["job_id"])
        #: How many may be in hand, of this mailing alone and as far as the platform is quick enough, and how
        #: many are taken together.
        self._share = most
        self._most = self._together = 1
        self._slots = line.concurrency.slots(bulk=True)
        #: Whether nobody could be taken because others of the channel have all that may be in flight.
        self._waits_for_slots = False
        #: How many outcomes are being written: their places are free once they are.
        self._settling = 0
        #: Who is in hand, by id: their call is under way, or its outcome not written yet.
        self._in_hand: dict[str, RecipientDelivery] = {}
        self._ended: list[RecipientDelivery] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._progress = asyncio.Event()
        #: Whether nothing more is taken in hand, and from when on in Unix milliseconds to go on.
        self._over = False
        self._again_ms: int | None = None
        self._is_first = True
        self._has_progressed = False
        #: Whether somebody may wait to be tried again; nobody but this turn makes them.
        self._some_wait = True
        #: Whether as many were taken as are taken together, so that there may be more.
        self._took_all = False
        #: When the next are due by the mailing's pace and worth waiting for, in Unix milliseconds.
        self._next_ms: int | None = None
        #: Why nobody can get it, e.g. a file that no messenger takes.
        self._failure: DeliveryError | None = None
        #: What failed before the calls of those who were taken last.
        self._error: Exception | None = None
        self._tries = 0
        #: Whether the database's answers come through the event loop as the calls' do.
        self._shares_loop = False

    async def run(self) -> None:
        ends_s = time.monotonic() + TURN_S
        try:
            await self._look_at_file()
            while True:
                await self._step()
                if self._over and not self._in_hand:
                    break
                await self._wait()
                if time.monotonic() >= ends_s or self._ctx.stopping or self._line.closed:
                    self._over = True
        except LeaseLost:
            await self._calls_made()
            await retry_on_deadlock(self._write_late)
            raise
        finally:
            # A call that went on beside the next run would be made by somebody unknown to it.
            await self._calls_made()
            self._slots.set(0)
        if self._error is not None:
            raise self._error
        await self._end()

    async def _calls_made(self) -> None:
        while self._calls:
            await asyncio.gather(*self._calls, return_exceptions=True)

    async def _write_late(self) -> None:
        """Writes down who was sent to, though another has the way by now."""
        async with self._ctx.transaction() as tx:
            mailing = await store.lock(tx, *self._key)
            if mailing is None:
                return
            late = await self._outcomes.settle_late(self._post(mailing), tx, self._ended)
        if late:
            log.warning("outcomes_came_late", channel=self._bot, count=late)

    async def _wait(self) -> None:
        """Until there is something to write down, or the mailing is worth another look."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_s()):
                while self._waits_for_slots and self._slots.available <= 0:
                    await self._line.concurrency.until_changed()
                while not self._is_worth_a_step:
                    self._progress.clear()
                    await self._progress.wait()

    @property
    def _is_worth_a_step(self) -> bool:
        if self._over:
            return not self._calls
        if self._next_ms is not None:
            return False
        has_room = self._took_all and len(self._in_hand) + self._together <= self._most
        return has_room or not self._calls or len(self._ended) >= self._together

    def _look_s(self) -> float:
        if self._over:
            return LOOK_S
        now_ms, look_s = self._clock.now_ms(), LOOK_S
        if self._next_ms is not None:
            look_s = max(0.0, (self._next_ms - now_ms) / 1000)
        room = self._line.paced_room()
        return look_s if room is None else min(look_s, max(0.02, (room.look_ms - now_ms) / 1000))

    async def _step(self) -> None:
        """Writes down what has ended, and takes more people in hand, in one transaction."""
        ended, self._ended = self._ended, []
        for letter in ended:
            del self._in_hand[letter.subscriber_id]
        # What has ended is known here alone: lost, it would be in doubt.
        try:
            step = await retry_on_deadlock(partial(self._write, ended))
        except LeaseLost:
            self._ended = [*ended, *self._ended]
            raise
        if step is None:
            # Its project was removed, and nothing is kept of it.
            self._over = True
            return
        post, taken = step
        self._is_first = False
        self._has_progressed = self._has_progressed or bool(ended)
        self._in_hand.update((letter.subscriber_id, letter) for letter in taken)
        self._slots.set(len(self._in_hand))
        await self._begin(post, taken)

    async def _write(
        self, ended: Sequence[RecipientDelivery]
    ) -> tuple[SendContext, list[RecipientDelivery]] | None:
        """The transaction of a step; returns who is in hand after it, or None if the mailing is gone."""
        self._settling = len(ended)
        self._slots.set(len(self._in_hand) + self._settling)
        async with self._ctx.holding(self._job) as tx:
            self._shares_loop = tx.dialect == "postgresql"
            locked = await self._lock(tx)
            if locked is None:
                return None
            mailing, way = locked.mailing, locked.way
            post = self._post(mailing)
            if self._is_first:
                await self._outcomes.settle_left(post, tx, self._job)
            await self._settle(post, tx, ended)
            taken, walked_to = await self._take(post, tx, way)
            in_hand = [*self._in_hand, *(letter.subscriber_id for letter in taken)]
            if walked_to != way.walked_to or in_hand != way.in_hand:
                now = replace(way, walked_to=walked_to, in_hand=in_hand)
                await store.set_way(tx, *mailing.key, now)
        return post, taken

    async def _lock(self, tx: Tx) -> LockedShard | None:
        """The mailing and its way; it is paused where its project is not active any more."""
        locked = await store.lock_way(tx, *self._key, self._bot)
        if locked is None or locked.is_project_active or locked.mailing.status != "running":
            return locked
        await store.pause_if_disabled(tx, *self._key, self._clock.now_ms())
        return await store.lock_way(tx, *self._key, self._bot)

    async def _settle(self, post: SendContext, tx: Tx, ended: Sequence[RecipientDelivery]) -> None:
        if await self._outcomes.settle(post, tx, ended):
            self._some_wait = True
        if ended and not self._has_progressed:
            # However often a process dies, as long as each gets some of the calls done.
            await self._ctx.progressed(tx, self._job)

    def _post(self, mailing: Mailing) -> SendContext:
        content = read_column(mailing.content)
        return SendContext(mailing, content, self._channel, self._line, self._failure)

    # ---- who is next ----------------------------------------------------------------------------

    async def _take(
        self, post: SendContext, tx: Tx, way: MailingShard
    ) -> tuple[list[RecipientDelivery], str]:
        """The next people, who are in hand when `tx` is committed, and how far the way has come then."""
        mailing, now_ms = post.mailing, self._clock.now_ms()
        most, self._took_all, self._next_ms = 0, False, None
        self._waits_for_slots = False
        if mailing.status != "running":
            self._over = True
        elif not self._over and await ledger.stands_aside(tx, self._job.lane, now_ms):
            self._over, self._again_ms = True, now_ms
        elif not self._over:
            most = self._room(mailing, now_ms)
        if most <= 0:
            return [], way.walked_to
        again = await self._due_again(tx, mailing, now_ms, most)
        new = await ledger.walk(tx, mailing, way, most - len(again))
        letters = await self._letters(post, tx, [*again, *map(Tried, new)])
        if mailing.per_minute is not None and letters:
            await store.set_next(tx, mailing, pace.after(mailing, now_ms, len(letters)))
        self._took_all = len(again) + len(new) == self._together
        if not again and not new:
            # What is in hand may still go back; the end of the turn looks whether any did.
            self._over = True
        return letters, new[-1] if new else way.walked_to

    async def _due_again(self, tx: Tx, mailing: Mailing, now_ms: int, most: int) -> list[Tried]:
        """Those who are to be tried again now, and are taken out of those who wait for that."""
        if not self._some_wait:
            return []
        again = await ledger.due_again(tx, mailing, self._bot, now_ms, most)
        if again:
            await ledger.take_hold(tx, mailing, [each.subscriber_id for each in again])
        else:
            next_ms = await ledger.next_again_ms(tx, mailing, self._bot)
            self._some_wait = next_ms is not None
        return again

    def _room(self, mailing: Mailing, now_ms: int) -> int:
        """How many people may be taken in hand now. Ends the turn where that takes a while to change."""
        due, look_ms = self._most, None
        if mailing.per_minute is not None:
            due, look_ms = pace.room(mailing, now_ms), pace.look_ms(mailing)
            if due <= 0 and look_ms is None:
                self._over, self._again_ms = True, pace.again_ms(mailing, now_ms)
                return 0
        self._most = min(self._share, self._line.concurrency.bulk_limit)
        self._together = max(1, int(self._most * TOGETHER))
        free = min(self._together, self._most - len(self._in_hand))
        room = self._line.paced_room()
        if room is not None:
            free = min(free, room.jobs)
            if free <= 0 and not self._in_hand:
                # The lane's gate knows when to come again.
                self._over, self._again_ms = True, now_ms
        slots = self._slots.available + self._settling
        if slots < free:
            self._waits_for_slots = slots <= 0 and not self._in_hand
            free = slots
        if look_ms is not None and due <= free:
            self._next_ms = now_ms + look_ms
        room_now = min(free, due)
        # Counted before they are in hand: others of the channel take people in hand meanwhile.
        self._slots.set(max(self._slots.count, len(self._in_hand) + room_now))
        return room_now

    async def _letters(
        self, post: SendContext, tx: Tx, taken: Sequence[Tried]
    ) -> list[RecipientDelivery]:
        """Letters to those of `taken` who get one; the others are skipped."""
        project_id = post.mailing.project_id
        found = await self._sender.subscribers.get_many(
            tx, [(project_id, each.subscriber_id) for each in taken]
        )
        now_ms = self._clock.now_ms()
        letters: list[RecipientDelivery] = []
        skipped: list[tuple[str, str]] = []
        #: Who must not be sent to any more, and may have got it before.
        doubtful: list[RecipientDelivery] = []
        is_paced = self._line.paced_room() is not None
        for each in taken:
            subscriber_id = each.subscriber_id
            subscriber = found.get((project_id, subscriber_id))
            if (why := obstacle(post, subscriber, now_ms)) is not None:
                if each.in_doubt and subscriber is not None:
                    doubtful.append(RecipientDelivery(subscriber, each.attempts, self._job))
                else:
                    skipped.append((subscriber_id, why))
                continue
            assert subscriber is not None, "who is missing is not subscribed"
            job = self._job
            if is_paced:
                job = replace(job, job_id=f"{job.job_id}:{subscriber_id}")
            letters.append(
                RecipientDelivery(
                    subscriber, each.attempts, job, each.refused_from_ms, in_doubt=each.in_doubt
                )
            )
        await self._outcomes.skip(post, tx, skipped)
        await self._outcomes.give_up(post, tx, doubtful)
        return letters

    # ---- their calls ----------------------------------------------------------------------------

    async def _begin(self, post: SendContext, taken: Sequence[RecipientDelivery]) -> None:
        """Begins the calls of those who were just taken in hand."""
        try:
            sendable = await self._sender.letters.write(post, taken)
        except Exception as error:  # noqa: BLE001 - raised when they have been put back
            # None of them was called, so none may end as `unknown`.
            for letter in taken:
                letter.again_in_ms = 0
            self._ended += taken
            self._over, self._error = True, error
            return
        if waits_ms := [each.again_in_ms for each in taken if each.again_in_ms is not None]:
            # Their files' host takes its time: more of them would only wait as well.
            self._over, self._again_ms = True, self._clock.now_ms() + min(waits_ms)
        is_sent = set(map(id, sendable))
        self._ended += [letter for letter in taken if id(letter) not in is_sent]
        self._line.expect([letter.job for letter in sendable])
        # With a pace they are spread until the next look: all at once, they would hold up whatever else
        # the process does.
        step_s = 0.0 if self._next_ms is None else self._look_s() / max(1, len(sendable))
        self._go(self._send_all(post, sendable, step_s))

    async def _send_all(
        self, post: SendContext, letters: Sequence[RecipientDelivery], step_s: float
    ) -> None:
        a_turn = A_TURN_WITH_STATEMENTS if self._shares_loop else BATCH
        async for number, letter in yield_every(enumerate(letters), a_turn):
            self._go(self._send(post, letter, number * step_s))

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._call_ended)

    async def _send(self, post: SendContext, letter: RecipientDelivery, after_s: float) -> None:
        try:
            if after_s > 0:
                await asyncio.sleep(after_s)
            await self._sender.letters.send(post, letter)
        finally:
            self._line.ended([letter.job])
            self._ended.append(letter)

    def _call_ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        if not self._calls or len(self._ended) >= self._together:
            self._progress.set()

    # ---- the file that all get ------------------------------------------------------------------

    async def _look_at_file(self) -> None:
        """Nobody is taken in hand before the file of all is known to do, or never to."""
        job = self._job
        async with self._ctx.reading() as tx:
            mailing = await store.find(tx, *self._key)
        if mailing is None:
            return
        check = await self._sender.letters.check_shared(read_column(mailing.content))
        if check is None or (check.done and check.failure is None):
            return
        now_ms = self._clock.now_ms()
        if check.failure is None:
            self._over, self._again_ms = True, now_ms + round(check.retry_in_s * 1000)
            return
        self._tries = job.payload["tries"] + 1
        away = check.failure.reason is Reason.PLATFORM_UNAVAILABLE
        if away and self._tries < self._sender.attempts:
            self._over = True
            self._again_ms = self._line.retry_at_ms(check.failure, BACKOFF, self._tries)
        else:
            self._failure = check.failure

    # ---- the end of the turn --------------------------------------------------------------------

    async def _end(self) -> None:
        """Has the way go on, or ends it, and the mailing with the last one."""
        ctx, job = self._ctx, self._job
        # As who resumes or cancels it has them: the mailing before the job of its way.
        async with ctx.completing(job, first=lambda tx: store.lock(tx, *self._key)) as tx:
            locked = await store.lock_way(tx, *self._key, self._bot)
            if locked is None:
                return
            mailing = locked.mailing
            if mailing.status == "cancelled":
                await self._sender.mailings.end(tx, *mailing.key, "cancelled")
            elif mailing.status == "running":
                await self._go_on(tx, mailing, locked.way)

    async def _go_on(self, tx: Tx, mailing: Mailing, way: MailingShard) -> None:
        again_ms = self._again_ms or 0
        if not await ledger.walk(tx, mailing, way, 1):
            next_ms = await ledger.next_again_ms(tx, mailing, self._bot)
            if next_ms is None:
                await store.set_way(tx, *mailing.key, replace(way, is_done=True))
                await self._sender.mailings.end(tx, *mailing.key, "completed")
                return
            again_ms = max(again_ms, next_ms)
        if mailing.per_minute is not None:
            again_ms = max(again_ms, pace.due_ms(mailing))
        run_at_ms = max(self._clock.now_ms(), again_ms)
        await self._sender.mailings.go_on(tx, mailing, self._bot, run_at_ms, self._tries)
