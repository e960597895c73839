"""Delivers queued messages: a batch of one channel's lane at a time.

A message is marked `sending` before the platform is called, and gets its outcome afterwards. If the process
dies between the two, the outcome is not known; the message becomes `unknown` and is never sent again
(decision 0075: no silent duplicates). On a platform that drops duplicates it is sent again, with the same key
(docs/decisions/0007-crash-during-delivery.md). A process that was only suspended records its results once its
calls end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import ceil

import structlog

from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outbound.concurrency import Slots
from msgsvc_core.channels.outbound.gates import OutboundBatch, OutboundGates
from msgsvc_core.channels.outbound.rate_limits import AHEAD_S
from msgsvc_core.channels.outbound.send_attempt import PATIENCE_S, Outcome, RetryPolicy
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import DatabaseUnavailable, Tx, retry_on_deadlock
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, LeaseLost, Reschedule
from msgsvc_core.kernel.aio import yield_every
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages import edit_store, files, store
from msgsvc_core.messages.deliveries import Delivery, DeliveryLoader, is_due
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.outcomes import DIED, MessageOutcomes, refuse_ended
from msgsvc_core.subscribers.preferences_links import PreferencesLinks

JOB = "message.deliver"

#: Seconds between attempts to write outcomes that the database did not accept. Few: once it is available, a
#: runner that finds the leases expired records the messages as unknown, until they are corrected.
RETRY_WRITE_S = 0.2

log = structlog.get_logger(__name__)


class _Edited(Exception):
    """A message that was about to fail has been edited."""


class MessageDelivery:
    """The job that delivers messages."""

    def __init__(
        self,
        *,
        clock: Clock,
        gates: OutboundGates,
        loader: DeliveryLoader,
        files: MessageFiles,
        outcomes: MessageOutcomes,
        retries: RetryPolicy,
        sender: ChannelSender,
        preferences: PreferencesLinks,
    ) -> None:
        self._clock = clock
        self._gates = gates
        self._loader = loader
        self._files = files
        self._outcomes = outcomes
        self._retries = retries
        self._sender = sender
        self._preferences = preferences

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            JOB,
            self.deliver,
            on_dead=self._outcomes.settle_dead,
            on_retry=refuse_ended,
            inline=True,
            sends="messages",
            on_withdrawn=self._outcomes.settle_withdrawn,
        )

    async def deliver(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Sends a batch in rounds: chats concurrently, one message of each chat per round.

        So every message marked `sending` has its call in progress, and a crash leaves at most one message per
        chat with an unknown outcome. No more are marked than may be in flight. Concurrent batches share no
        recipient. Messages that must wait for their chat are rescheduled.
        """
        async with self._gates.batch(ctx, jobs) as batch:
            waiting, patience_s = batch.jobs, PATIENCE_S
            while waiting:
                waiting = await self._run_round(batch, waiting, patience_s)
                # A chat's next turn is soon only if its rate limit is high.
                patience_s = AHEAD_S

    async def _run_round(
        self, batch: OutboundBatch, jobs: Sequence[Job], patience_s: float
    ) -> list[Job]:
        """Sends the first message of each chat; returns the jobs that remain."""
        slots = await batch.gate.free_slots()
        if slots is None:
            async with batch.ctx.putting_back(batch.gate.release(jobs)):
                return []
        deliveries = await self._loader.load(jobs)
        with slots:
            return await self._deliver(batch, deliveries, patience_s, slots)

    async def _deliver(
        self, batch: OutboundBatch, deliveries: Sequence[Delivery], patience_s: float, slots: Slots
    ) -> list[Job]:
        chats, patient = await self._start(batch, deliveries, patience_s, slots)
        async with asyncio.TaskGroup() as calls:
            async for first in yield_every(
                [first for first, *_ in chats if first.marked and first.delay_ms is None]
            ):
                calls.create_task(self._send(batch, first))
        final: list[Delivery] = []
        unsent: list[tuple[list[Delivery], Outcome]] = []
        behind: list[Job] = []
        for chat in chats:
            first, *rest = chat
            outcome = self._outcome(batch, first)
            if first.marked and not outcome.is_final:
                unsent.append((chat, outcome))
                continue
            behind += [delivery.job for delivery in rest]
            if first.marked:
                final.append(first)
        if final:
            await self._write_outcomes(batch, final)
        if unsent:
            await self._put_back(batch, unsent)
        return [*patient, *behind]

    async def _send(self, batch: OutboundBatch, delivery: Delivery) -> None:
        channel, chat_id, message = batch.channel, delivery.chat_id, delivery.message
        assert channel is not None, "what is due has a channel"
        content = message.content.with_key(message.message_id).of_project(message.project_id)
        if channel.capabilities.addresses:
            url = self._preferences.url(message.project_id, message.subscriber_id)
            content = content.with_unsubscribe_url(url)
        send = partial(self._sender.send, channel, chat_id, content)
        # It was marked for its chat's turn, which is soon.
        await delivery.make(batch.gate, channel, chat_id, send, in_flight=True, patience_s=None)

    def _outcome(self, batch: OutboundBatch, delivery: Delivery) -> Outcome:
        return delivery.outcome(
            batch.gate, self._retries, self._clock.now_ms(), repeatable=batch.repeatable
        )

    async def _write_outcomes(self, batch: OutboundBatch, final: Sequence[Delivery]) -> None:
        """Writes the outcomes of messages, and retries while the database is unavailable, since only this
        process knows them. Recognises a commit whose confirmation was lost."""
        is_logged = False
        while True:
            try:
                return await self._try_to_write(batch, final)
            except DatabaseUnavailable as error:
                if batch.ctx.stopping:
                    raise
                if not is_logged:
                    log.warning(
                        "outcomes_wait_for_the_database", count=len(final), error=str(error)
                    )
                is_logged = True
            await asyncio.sleep(RETRY_WRITE_S)

    async def _try_to_write(self, batch: OutboundBatch, final: Sequence[Delivery]) -> None:
        try:
            await retry_on_deadlock(partial(self._settle_final, batch.ctx, final))
        except LeaseLost:
            await retry_on_deadlock(partial(self._settle_late, batch, final))
            raise

    async def _settle_final(self, ctx: JobContext, final: Sequence[Delivery]) -> None:
        async with ctx.completing(*(delivery.job for delivery in final)) as tx:
            await self._outcomes.count(tx, await self._outcomes.settle(tx, final))

    async def _settle_late(self, batch: OutboundBatch, final: Sequence[Delivery]) -> None:
        """Corrects the outcomes of messages whose jobs another runner took over while this one was suspended.

        That runner found them `sending`, and records them as `unknown`; only this process knows the
        platform's responses. Whichever comes first, the messages end with their real outcome.
        """
        outcomes = self._outcomes
        # A failure says little if the other runner calls again, with the same key.
        known = [
            each
            for each in final
            if each.failure is None or not (each.in_doubt or batch.repeatable)
        ]
        async with batch.ctx.transaction() as tx:
            ended = await outcomes.settle(tx, known)
            is_ended = {end.message.message_id for end in ended}
            late = [each for each in known if each.message.message_id not in is_ended]
            corrected = await outcomes.correct(tx, late)
            await outcomes.count(tx, ended, corrected)
        if corrected:
            log.warning("outcomes_came_late", channel=batch.gate.key, count=len(corrected))

    async def _start(
        self, batch: OutboundBatch, deliveries: Sequence[Delivery], patience_s: float, slots: Slots
    ) -> tuple[list[list[Delivery]], list[Job]]:
        """Settles messages that must not be sent, and reschedules those whose file or chat is not ready
        soon. Returns the others by chat, the first of each marked, and the jobs that may wait a moment for
        their file, or for capacity in flight."""
        now_ms = self._clock.now_ms()
        chats: dict[str, list[Delivery]] = defaultdict(list)
        due: list[Delivery] = []
        not_due: list[Delivery] = []
        refused: list[Delivery] = []
        for delivery in deliveries:
            (due if is_due(batch, delivery, now_ms) else not_due).append(delivery)
        await self._files.check_due(due)
        for delivery in due:
            if problem := _problem(batch, delivery):
                delivery.failure = DeliveryError(Reason.INVALID_MESSAGE, problem)
            if delivery.failure and self._outcome(batch, delivery).is_final:
                # A message that may have been delivered is not rejected any more: its outcome is unknown.
                (not_due if delivery.in_doubt else refused).append(delivery)
            else:
                chats[delivery.chat_id].append(delivery)
        waiting = files.remove_waiting(batch.gate, chats, partial(self._outcome, batch))
        if back := waiting.back + self._remove_early(batch, chats, patience_s):
            # Before others are marked: an error here leaves none of them with an unknown outcome.
            async with batch.ctx.putting_back(back) as tx:
                await files.record_tries(tx, waiting.away)
        patient = waiting.patient + _remove_surplus(chats, slots)
        firsts = [chat[0] for chat in chats.values()]
        try:
            marked = await self._settle_and_mark(batch, not_due, refused, firsts)
        except _Edited:
            undone = [*not_due, *refused, *chain.from_iterable(chats.values())]
            return [], [*patient, *(delivery.job for delivery in undone)]
        for first in firsts:
            # One that could not be marked was deleted, or another runner has it.
            first.marked = first.message.message_id in marked
            _apply_edit(first, marked.get(first.message.message_id))
        return list(chats.values()), patient

    async def _settle_and_mark(
        self,
        batch: OutboundBatch,
        not_due: Sequence[Delivery],
        refused: Sequence[Delivery],
        firsts: Sequence[Delivery],
    ) -> dict[str, OutgoingMessage | None]:
        """Ends messages that are not sent; marks `firsts`, and returns what `mark_sending` does."""
        messages = [first.message for first in firsts]
        if not not_due and not refused:
            async with batch.ctx.statement() as tx:
                return await store.mark_sending(tx, messages, repeats=batch.repeatable)
        async with batch.ctx.completing(*(delivery.job for delivery in (*not_due, *refused))) as tx:
            ended = await self._outcomes.settle_unsent(tx, batch, not_due)
            if refused and (refused := await _still_refused(tx, refused)):
                await files.record_tries(tx, refused)
                ended += await self._outcomes.settle(tx, refused)
            marked = await store.mark_sending(tx, messages, repeats=batch.repeatable)
            await self._outcomes.count(tx, ended)
        return marked

    def _remove_early(
        self, batch: OutboundBatch, chats: dict[str, list[Delivery]], patience_s: float
    ) -> list[Reschedule]:
        """Removes the chats from `chats` whose next turn is later than `patience_s`."""
        gate, now_ms = batch.gate, self._clock.now_ms()
        back: list[Reschedule] = []
        for chat_id, delay_s in gate.chat_delays_s(chats, patience_s).items():
            jobs = [delivery.job for delivery in chats.pop(chat_id)]
            back += gate.reschedule(jobs, now_ms + ceil(delay_s * 1000))
        return back

    async def _put_back(
        self, batch: OutboundBatch, unsent: Sequence[tuple[Sequence[Delivery], Outcome]]
    ) -> None:
        """Reschedules the first message of each chat, and the others of the chat after it."""
        back: list[Reschedule] = []
        unmarked: list[Message] = []
        queued: list[tuple[Message, str, Reason | None]] = []
        for chat, outcome in unsent:
            first = chat[0]
            back += outcome.reschedule(batch.gate, [delivery.job for delivery in chat])
            doubt = Reason.UNKNOWN if first.in_doubt else None
            if first.failure is not None:
                queued.append((first.message, first.failure.text, doubt))
            elif doubt:
                queued.append((first.message, DIED, doubt))
            else:
                unmarked.append(first.message)
        async with batch.ctx.putting_back(back) as tx:
            await store.unmark_sending(tx, unmarked)
            await store.mark_queued(tx, queued)


async def _still_refused(tx: Tx, refused: Sequence[Delivery]) -> list[Delivery]:
    """Those that nobody deleted while their file was checked. Raises `_Edited`, so that all are rolled
    back and checked again, if one of them was edited meanwhile."""
    now = await edit_store.still_queued(tx, [delivery.message for delivery in refused])
    if any(
        now.get(each.message.key, each.message.content) != each.message.content for each in refused
    ):
        raise _Edited
    return [delivery for delivery in refused if delivery.message.key in now]


def _apply_edit(delivery: Delivery, edited: OutgoingMessage | None) -> None:
    """Uses the edited content. If the attachment changed, reschedules the delivery so that the new file is
    checked first."""
    message = delivery.message
    if edited is not None and edited != message.content:
        if edited.media != message.content.media:
            delivery.delay_ms = 0
        delivery.message = replace(message, content=edited)


def _remove_surplus(chats: dict[str, list[Delivery]], slots: Slots) -> list[Job]:
    """Removes the chats from `chats` that exceed the free capacity in flight; the others are in flight
    from here on."""
    surplus = list(chats)[max(0, slots.available) :]
    jobs = [delivery.job for chat_id in surplus for delivery in chats.pop(chat_id)]
    slots.acquire([first.job.job_id for first, *_ in chats.values()])
    return jobs


def _problem(batch: OutboundBatch, delivery: Delivery) -> str | None:
    """Why the platform can't show the message: its capabilities may have changed since it was queued."""
    assert batch.channel is not None, "what is due has a channel"
    return batch.channel.problem(delivery.message.content)
