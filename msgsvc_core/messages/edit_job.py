"""Edits and deletes messages that were sent, as jobs of the channel's lane, in the order of each receiver.

An edit shows what the message is when the job runs: several quick edits may need one call. A call whose
answer was lost is made again, since it does no harm twice.
"""

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.ordering import receiver_of
from msgsvc_core.channels.outbound import PATIENCE_S, ChannelPaused, OutboundGate, OutboundGates
from msgsvc_core.channels.outbox import channel_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.words import ChannelSender
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Reschedule, as_rate_limited
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages import edit_store, store
from msgsvc_core.messages.delivery import BACKOFF, gives_up
from msgsvc_core.messages.edits import JOB, MessageChanges
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: Milliseconds after which a message that is just being sent is looked at again.
SENDING_MS = 500

log = structlog.get_logger(__name__)


class Later(Exception):
    """The change must wait for `wait_ms`; that is no failure of it."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__(f"{wait_ms} ms")
        self.wait_ms = wait_ms


@dataclass(frozen=True, slots=True)
class Batch:
    """What the changes of a batch need."""

    ctx: JobContext
    channel: Channel | None
    line: OutboundGate


class MessageEditor:
    """The job that edits or deletes a message at its platform."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        lines: OutboundGates,
        subscribers: Subscribers,
        changes: MessageChanges,
        files: MessageFiles,
        limits: LimitSettings,
        sender: ChannelSender,
    ) -> None:
        self._clock = clock
        self._channels = channels
        self._lines = lines
        self._subscribers = subscribers
        self._changes = changes
        self._files = files
        self._limits = limits
        self._sender = sender

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.change, on_dead=self.settle_dead)

    async def change(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Makes the changes of a batch: receivers side by side, those of one in their order."""
        key = channel_of(jobs[0].lane)
        channels, line = self._channels, self._lines[key]
        async with channels.borrow(key) as channel, channels.turns.take(map(receiver_of, jobs)):
            of_receivers: dict[Hashable, list[Job]] = defaultdict(list)
            for job in await line.in_order(ctx, jobs):
                of_receivers[receiver_of(job)].append(job)
            batch = Batch(ctx, channel, line)
            # All are awaited even if one fails: a call must not go on beside the retry of its own job.
            ended = await asyncio.gather(
                *(self._in_order(batch, theirs) for theirs in of_receivers.values()),
                return_exceptions=True,
            )
        for failure in ended:
            if failure is not None:
                raise failure

    async def _in_order(self, batch: Batch, jobs: Sequence[Job]) -> None:
        for number, job in enumerate(jobs):
            back = await self._run(batch, job, jobs[number:])
            if back:
                async with batch.ctx.putting_back(back):
                    return

    async def _run(self, batch: Batch, job: Job, jobs: Sequence[Job]) -> list[Reschedule]:
        """Makes the first of a receiver's changes; returns what puts it and those after it back, if it
        must be made later."""
        line = batch.line
        message, subscriber = await self._load(batch.ctx, job)
        failure: DeliveryError | None = None
        if message is None:
            return await self._complete(batch, job)
        try:
            if not await self._is_due(batch, job, message):
                return await self._complete(batch, job)
            await self._call(batch, job, message, subscriber)
        except ChannelPaused:
            return line.again(jobs)
        except Later as later:
            return line.later(jobs, self._clock.now_ms() + later.wait_ms)
        except DeliveryError as error:
            if not gives_up(self._limits, self._clock, job, error):
                is_refused = error.only_waits
                at_ms = line.retry_at_ms(error, BACKOFF, job.attempts)
                back = line.later(jobs, at_ms, counts=not is_refused)
                return as_rate_limited(back) if is_refused else back
            failure = error
        async with batch.ctx.completing(job) as tx:
            await self._settle(tx, job, message, subscriber, failure)
        return []

    async def _complete(self, batch: Batch, job: Job) -> list[Reschedule]:
        """There is nothing to do."""
        async with batch.ctx.completing(job):
            return []

    async def _load(self, ctx: JobContext, job: Job) -> tuple[Message | None, Subscriber | None]:
        project_id = job.project_id or ""
        receiver = project_id, job.payload["subscriber_id"]
        async with ctx.reading() as tx:
            message = await store.find(tx, project_id, job.payload["message_id"])
            return message, (await self._subscribers.get_many(tx, [receiver])).get(receiver)

    async def _is_due(self, batch: Batch, job: Job, message: Message) -> bool:
        """Whether the platform is to be called. Raises `Later` while the message is being sent."""
        is_edit = job.payload["change"] == "edit"
        if message.status == "sending":
            raise Later(SENDING_MS)
        if message.status == "queued":
            # The platform refused it for now. An edited one is sent as it is then, a deleted one never.
            if not is_edit:
                async with batch.ctx.transaction() as tx:
                    if not await self._changes.skip(tx, message):
                        raise Later(SENDING_MS)
            return False
        if message.status != "sent" or message.deleted_at_ms is not None:
            return False
        return not is_edit or message.shown is not None

    async def _call(
        self, batch: Batch, job: Job, message: Message, subscriber: Subscriber | None
    ) -> None:
        """Calls the platform. Raises `DeliveryError`, `ChannelPaused`, `Later`."""
        channel, line = batch.channel, batch.line
        if channel is None or message.message_ref is None:
            raise DeliveryError(Reason.UNKNOWN, "its channel is gone")
        if subscriber is None or subscriber.bot != channel.key:
            raise DeliveryError(Reason.UNKNOWN, "the person has gone over to another bot")
        chat_id = subscriber.chat_id
        if job.payload["change"] == "edit":
            content = message.content
            if message.shown and message.shown.media != content.media:
                await self._check_file(message)
            elif channel.capabilities.edit_media:
                # So that it need not be handed over again.
                content = replace(content, media=None)
            if problem := channel.problem(message.content):
                raise DeliveryError(Reason.INVALID_MESSAGE, problem)
            make = partial(self._sender.edit, channel, chat_id, message.message_ref, content)
        else:
            make = partial(channel.delete, chat_id, message.message_ref)
        wait_s = line.too_early_s(chat_id, PATIENCE_S)
        if wait_s is not None:
            raise Later(ceil(wait_s * 1000))
        try:
            await line.call(channel, job, chat_id, make)
        except (ChannelPaused, DeliveryError):
            raise
        except Exception as error:
            log.exception("channel_broke_contract", channel=channel.key)
            raise DeliveryError(Reason.UNKNOWN, type(error).__name__) from None

    async def _check_file(self, message: Message) -> None:
        check = await self._files.check_of(message.content.media)
        if check is not None and not check.done:
            raise Later(ceil(check.retry_in_s * 1000))
        if check is not None and check.failure is not None:
            raise check.failure

    async def _settle(
        self,
        tx: Tx,
        job: Job,
        message: Message,
        subscriber: Subscriber | None,
        failure: DeliveryError | None,
    ) -> None:
        """Writes what became of a change: when it was made, or why it was not."""
        kind, now_ms = job.payload["change"], self._clock.now_ms()
        if failure is not None:
            error = f"{kind}: {failure.text}"
            await edit_store.note_refusal(tx, message, error, edit=kind == "edit")
            if failure.reason.should_unsubscribe and subscriber is not None:
                await self._subscribers.block(
                    tx, message.bot, subscriber.user_id, reason=str(failure.reason)
                )
        elif kind == "edit":
            await edit_store.note_edited(tx, message, now_ms)
        else:
            await edit_store.note_deleted(tx, message, now_ms)

    async def settle_dead(self, tx: Tx, job: Job, _error: str) -> None:
        """Says on the message that a change of it could not be made."""
        message = await store.find(tx, job.project_id or "", job.payload["message_id"])
        if message is not None:
            # What went wrong is the operator's to know: it may name hosts and files of theirs.
            failure = DeliveryError(Reason.UNKNOWN, "the service could not do it")
            await self._settle(tx, job, message, None, failure)
