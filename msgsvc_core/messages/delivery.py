"""Delivers queued messages: a batch of one channel's lane at a time.

A message is marked `sending` before the platform is called, and gets its outcome afterwards. If the
process dies between the two, nobody knows whether the person saw it; it then becomes `unknown` and is
never sent again (decision 0075: nothing is sent twice silently). On a platform that drops repeats it
is sent again, with the same key (docs/decisions/0057-exactly-once.md). A process that only stood still says
what it knows once its calls end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil

import structlog

from msgsvc_core.channels.concurrency import Slots
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.ordering import receiver_of
from msgsvc_core.channels.outbound import AHEAD_S, PATIENCE_S, ChannelPaused, OutboundGates
from msgsvc_core.channels.outbox import channel_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.words import ChannelSender
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Database, DatabaseUnavailable, Tx, retry_on_deadlock
from msgsvc_core.jobs.contract import (
    Job,
    JobContext,
    JobSpec,
    LeaseLost,
    Reschedule,
    as_rate_limited,
    exponential,
)
from msgsvc_core.kernel.aio import yield_every
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages import edit_store, files, store
from msgsvc_core.messages.deliveries import Delivery, Round, is_due
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.outcomes import DIED, MessageOutcomes, refuse_ended
from msgsvc_core.subscribers.service import Subscribers

JOB = "message.deliver"

#: Seconds to wait after the n-th failed try of a message: 1, 2, 4 ... at most 5 minutes, a little more
#: or less.
BACKOFF = exponential(first_s=1, factor=2, max_s=300)

#: Seconds until outcomes are written again that the database did not take. Few: once it is back, a runner
#: that finds their leases over calls them unknown, until they are corrected.
WRITE_AGAIN_S = 0.2

log = structlog.get_logger(__name__)


class _Edited(Exception):
    """A message that was to be refused has been edited."""


class MessageDelivery:
    """The job that delivers messages."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        channels: Channels,
        lines: OutboundGates,
        subscribers: Subscribers,
        files: MessageFiles,
        outcomes: MessageOutcomes,
        limits: LimitSettings,
        sender: ChannelSender,
    ) -> None:
        self._clock = clock
        self._db = db
        self._channels = channels
        self._lines = lines
        self._subscribers = subscribers
        self._files = files
        self._outcomes = outcomes
        self._limits = limits
        self._sender = sender

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            JOB,
            self.deliver,
            on_dead=self._outcomes.settle_dead,
            on_retry=refuse_ended,
            inline=True,
        )

    async def deliver(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Sends a batch in rounds: chats side by side, one message of each chat at a time.

        So what is marked `sending` is in the platform's hands, and a crash leaves no more than one
        message of a chat in doubt. No more are marked at once than may be in flight. Batches that are under
        way at once share no receiver. What has to wait for its chat goes back to the lane.
        """
        key = channel_of(jobs[0].lane)
        channels, line = self._channels, self._lines[key]
        async with channels.borrow(key) as channel, channels.turns.take(map(receiver_of, jobs)):
            try:
                await self._in_rounds(Round(ctx, channel, line), await line.in_order(ctx, jobs))
            except Exception:
                line.failed(jobs)
                raise

    async def _in_rounds(self, this: Round, waiting: list[Job]) -> None:
        patience_s = PATIENCE_S
        while waiting:
            waiting = await self._round(this, waiting, patience_s)
            # A chat's next turn is near only where its pace is fast.
            patience_s = AHEAD_S

    async def _round(self, this: Round, jobs: Sequence[Job], patience_s: float) -> list[Job]:
        """Sends the first message of each chat; returns the jobs that are still to be done."""
        await this.line.concurrency.until_available()
        if this.line.closed:
            async with this.ctx.putting_back(this.line.again(jobs)):
                return []
        deliveries = await self._load(jobs)
        with this.line.concurrency.slots() as slots:
            return await self._deliver(this, deliveries, patience_s, slots)

    async def _load(self, jobs: Sequence[Job]) -> list[Delivery]:
        """What the jobs are about; what is gone is left out."""
        keys = {(job.project_id or "", job.payload["message_id"]): job for job in jobs}
        messages = await self._db.read_inline(lambda tx: store.find_many(tx, list(keys)))
        receivers = {(message.project_id, message.subscriber_id) for message in messages}
        subscribers = await self._db.read_inline(
            lambda tx: self._subscribers.get_many(tx, list(receivers))
        )
        loaded = {message.key: message for message in messages}
        return [
            Delivery(
                job,
                loaded[key],
                subscribers.get((loaded[key].project_id, loaded[key].subscriber_id)),
            )
            for key, job in keys.items()
            if key in loaded
        ]

    async def _deliver(
        self, this: Round, deliveries: Sequence[Delivery], patience_s: float, slots: Slots
    ) -> list[Job]:
        chats, aside = await self._begin(this, deliveries, patience_s, slots)
        firsts = [first for first, *_ in chats if first.marked]
        async with asyncio.TaskGroup() as calls:
            async for first in yield_every([first for first in firsts if not first.held]):
                calls.create_task(self._send(this, first))
        final = [first for first in firsts if self._is_final(this, first)]
        if final:
            await self._write_outcomes(this, final)
        unsent = [chat for chat in chats if chat[0].marked and not self._is_final(this, chat[0])]
        if unsent:
            await self._put_back(this, unsent)
        is_unsent = {id(chat) for chat in unsent}
        behind = [chat[1:] for chat in chats if id(chat) not in is_unsent]
        return [*aside, *(delivery.job for chat in behind for delivery in chat)]

    async def _write_outcomes(self, this: Round, final: Sequence[Delivery]) -> None:
        """Writes what became of messages, and tries again for as long as the database is away: what the
        platform answered is known here alone. A commit whose answer was lost is found to be made."""
        is_told = False
        while True:
            try:
                return await self._try_to_write(this, final)
            except DatabaseUnavailable as error:
                if this.ctx.stopping:
                    raise
                if not is_told:
                    log.warning(
                        "outcomes_wait_for_the_database", count=len(final), error=str(error)
                    )
                is_told = True
            await asyncio.sleep(WRITE_AGAIN_S)

    async def _try_to_write(self, this: Round, final: Sequence[Delivery]) -> None:
        try:
            await retry_on_deadlock(partial(self._settle_final, this.ctx, final))
        except LeaseLost:
            await retry_on_deadlock(partial(self._settle_late, this, final))
            raise

    async def _settle_final(self, ctx: JobContext, final: Sequence[Delivery]) -> None:
        async with ctx.completing(*(delivery.job for delivery in final)) as tx:
            await self._outcomes.count(tx, await self._outcomes.settle(tx, final))

    async def _settle_late(self, this: Round, final: Sequence[Delivery]) -> None:
        """Says what became of messages whose jobs another runner took over while this one stood still.

        It found them `sending`, and ends them as `unknown`; what the platform answered is known here alone.
        Whichever comes first, they end as what they are, and the other's job finds nothing left to do.
        """
        outcomes = self._outcomes
        # A refusal says little where the other runner calls again, with the same key.
        known = [
            each for each in final if each.failure is None or not (each.in_doubt or this.repeats)
        ]
        async with this.ctx.transaction() as tx:
            ended = await outcomes.settle(tx, known)
            is_ended = {end.message.message_id for end in ended}
            late = [each for each in known if each.message.message_id not in is_ended]
            corrected = await outcomes.correct(tx, late)
            await outcomes.count(tx, ended, corrected)
        if corrected:
            log.warning("outcomes_came_late", channel=this.line.key, count=len(corrected))

    async def _begin(
        self, this: Round, deliveries: Sequence[Delivery], patience_s: float, slots: Slots
    ) -> tuple[list[list[Delivery]], list[Job]]:
        """Settles what is not to be sent, and puts back whose file or chat's turn is far off; returns the
        others by chat, the first of each marked, and the jobs that may wait for their file a moment, or until
        fewer are in flight."""
        outcomes, now_ms = self._outcomes, self._clock.now_ms()
        chats: dict[str, list[Delivery]] = defaultdict(list)
        due: list[Delivery] = []
        not_due: list[Delivery] = []
        refused: list[Delivery] = []
        for delivery in deliveries:
            (due if is_due(this, delivery, now_ms) else not_due).append(delivery)
        await self._files.look_at(due)
        for delivery in due:
            if problem := _problem(this, delivery):
                delivery.failure = DeliveryError(Reason.INVALID_MESSAGE, problem)
            if delivery.failure and self._is_final(this, delivery):
                # What may have been shown is not refused any more: it ends in doubt.
                (not_due if delivery.in_doubt else refused).append(delivery)
            else:
                chats[delivery.chat_id].append(delivery)
        waiting = files.take_waiting(this.line, chats, self._clock.now_ms(), BACKOFF)
        if back := waiting.back + self._take_early(this, chats, patience_s):
            # Before others are marked: what fails here leaves none of them in doubt.
            async with this.ctx.putting_back(back) as tx:
                await files.note_tries(tx, waiting.away)
        aside = waiting.aside + _take_surplus(chats, slots)
        firsts = [chat[0] for chat in chats.values()]
        try:
            async with this.ctx.completing(
                *(delivery.job for delivery in (*not_due, *refused))
            ) as tx:
                ended = await outcomes.settle_unsent(tx, this, not_due)
                if refused := await _still_refused(tx, refused):
                    await files.note_tries(tx, refused)
                    ended += await outcomes.settle(tx, refused)
                marked = await store.mark_sending(
                    tx, [first.message for first in firsts], repeats=this.repeats
                )
                await outcomes.count(tx, ended)
        except _Edited:
            again = [
                *not_due,
                *refused,
                *(delivery for chat in chats.values() for delivery in chat),
            ]
            return [], [*aside, *(delivery.job for delivery in again)]
        for first in firsts:
            # One that could not be marked is not ours any more: it was deleted, or another runner has it.
            first.marked = first.message.message_id in marked
            _take_edit(first, marked.get(first.message.message_id))
        return list(chats.values()), aside

    def _take_early(
        self, this: Round, chats: dict[str, list[Delivery]], patience_s: float
    ) -> list[Reschedule]:
        """Takes the chats out of `chats` whose turn is further off than `patience_s`."""
        back: list[Reschedule] = []
        if not this.line.waits_for_chats:
            return back
        now_ms = self._clock.now_ms()
        for chat_id in list(chats):
            wait_s = this.line.too_early_s(chat_id, patience_s)
            if wait_s is not None:
                jobs = [delivery.job for delivery in chats.pop(chat_id)]
                back += this.line.later(jobs, now_ms + ceil(wait_s * 1000))
        return back

    async def _send(self, this: Round, delivery: Delivery) -> None:
        channel, chat_id, message = this.channel, delivery.chat_id, delivery.message
        assert channel is not None, "what is due has a channel"
        try:
            delivery.message_ref = await this.line.call_in_flight(
                channel,
                delivery.job,
                chat_id,
                partial(
                    self._sender.send,
                    channel,
                    chat_id,
                    message.content.with_key(message.message_id),
                ),
            )
        except ChannelPaused:
            delivery.held = True
        except DeliveryError as error:
            delivery.failure = error
        except Exception as error:
            log.exception("channel_broke_contract", channel=channel.key)
            delivery.failure = DeliveryError(Reason.UNKNOWN, type(error).__name__)

    def _is_final(self, this: Round, delivery: Delivery) -> bool:
        """Whether the message was sent, or has failed for good.

        A platform that asks to wait takes up none of the attempts, only time. What is in doubt is not
        tried again (docs/decisions/0007-crash-during-delivery.md), unless the platform drops repeats.
        """
        failure = delivery.failure
        if failure is None:
            return not delivery.held
        if failure.in_doubt and not this.repeats:
            return True
        return gives_up(self._limits, self._clock, delivery.job, failure)

    async def _put_back(self, this: Round, chats: Sequence[Sequence[Delivery]]) -> None:
        """Has the first message of each chat tried again, and the others of the chat after it."""
        line = this.line
        back: list[Reschedule] = []
        for first, *rest in chats:
            failure, jobs = first.failure, [first.job, *(delivery.job for delivery in rest)]
            is_refused = failure is not None and failure.only_waits
            if failure is None or (is_refused and line.closed):
                # All of the lane waits, so they need not wait for themselves.
                again = line.again(jobs)
                back += as_rate_limited(again) if is_refused else again
            else:
                # A refusal that names no time takes up no attempt, but the next wait is longer all the same.
                tries = first.message.attempts + 1 if is_refused else first.job.attempts
                at_ms = line.retry_at_ms(failure, BACKOFF, tries)
                later = line.later(jobs, at_ms, counts=not is_refused)
                back += as_rate_limited(later) if is_refused else later
        firsts = [first for first, *_ in chats]
        async with this.ctx.putting_back(back) as tx:
            held = [first for first in firsts if first.held]
            await store.unmark_sending(tx, [each.message for each in held if not each.in_doubt])
            await store.mark_queued(
                tx,
                [
                    *((each.message, DIED, Reason.UNKNOWN) for each in held if each.in_doubt),
                    *(
                        (
                            first.message,
                            first.failure.text,
                            Reason.UNKNOWN if first.in_doubt else None,
                        )
                        for first in firsts
                        if first.failure
                    ),
                ],
            )


def gives_up(limits: LimitSettings, clock: Clock, job: Job, failure: DeliveryError) -> bool:
    """Whether a call that failed so is not made again."""
    if failure.only_waits:
        # Since the first time: it may have waited for a stopped bot, or a service that was down.
        now_ms = clock.now_ms()
        since_ms = now_ms if job.refused_from_ms is None else job.refused_from_ms
        return now_ms - since_ms >= limits.delivery_hours * 3600 * 1000
    return not failure.reason.retryable or job.attempts >= limits.delivery_attempts


async def _still_refused(tx: Tx, refused: Sequence[Delivery]) -> list[Delivery]:
    """Those that nobody deleted while their file was looked at. Raises `_Edited`, for all to be undone
    and looked at anew, if one of them is another message by now."""
    now = await edit_store.still_queued(tx, [delivery.message for delivery in refused])
    if any(
        now.get(each.message.key, each.message.content) != each.message.content for each in refused
    ):
        raise _Edited
    return [delivery for delivery in refused if delivery.message.key in now]


def _take_edit(delivery: Delivery, edited: OutgoingMessage | None) -> None:
    """Uses the edited content. If the attachment changed, reschedules the delivery so that the new file is
    checked first."""
    message = delivery.message
    if edited is not None and edited != message.content:
        delivery.held = edited.media != message.content.media
        delivery.message = replace(message, content=edited)


def _take_surplus(chats: dict[str, list[Delivery]], slots: Slots) -> list[Job]:
    """Takes the chats out of `chats` that are more than may be in flight now; the others are from here on."""
    surplus = list(chats)[max(0, slots.available) :]
    jobs = [delivery.job for chat_id in surplus for delivery in chats.pop(chat_id)]
    slots.take([first.job.job_id for first, *_ in chats.values()])
    return jobs


def _problem(this: Round, delivery: Delivery) -> str | None:
    """Why the platform can't take the message: what it takes may have changed since it was queued."""
    assert this.channel is not None, "what is due has a channel"
    return this.channel.problem(delivery.message.content)
