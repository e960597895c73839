"""Edits and deletes sent messages, by jobs of the channel's lane, in order per recipient.

An edit uses the message's content when the job runs: several quick edits may need one call. A call whose
response was lost is repeated, since edits and deletions are idempotent.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from math import ceil

from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.health.overdue import GROUP, GROUPS, ClosedChannel
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gates import OutboundBatch, OutboundGates
from msgsvc_core.channels.outbound.ordering import receiver_of
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy, SendAttempt, run_by_chat
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Reschedule
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages import edit_store, store
from msgsvc_core.messages.edits import JOB, MessageChanges
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

#: Milliseconds after which a message that is being sent is checked again.
SENDING_MS = 500


class MessageEditor:
    """The job that edits or deletes a message on its platform."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        gates: OutboundGates,
        subscribers: Subscribers,
        changes: MessageChanges,
        files: MessageFiles,
        retries: RetryPolicy,
        sender: ChannelSender,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._gates = gates
        self._subscribers = subscribers
        self._changes = changes
        self._files = files
        self._retries = retries
        self._sender = sender

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            JOB, self.change, on_dead=self.settle_dead, sends="edits and deletions of messages"
        )

    async def change(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Makes the changes of a batch: recipients concurrently, those of one in order."""
        async with self._gates.batch(ctx, jobs) as batch:
            by_recipient: dict[Hashable, list[Job]] = defaultdict(list)
            for job in batch.jobs:
                by_recipient[receiver_of(job)].append(job)
            await run_by_chat(ctx, by_recipient.values(), partial(self._run, batch))

    async def _run(self, batch: OutboundBatch, jobs: Sequence[Job]) -> list[Reschedule]:
        """Makes the first of a recipient's changes. Returns a reschedule of it and those after it if it
        must be retried."""
        job, gate, attempt = jobs[0], batch.gate, SendAttempt.of_job(jobs[0])
        message, subscriber = await self._load(batch.ctx, job)
        if message is None or not await self._is_due(batch.ctx, attempt, message):
            async with batch.ctx.completing(job):
                return []
        if attempt.delay_ms is None:
            await self._call(batch, attempt, message, subscriber)
        # Edits and deletions are idempotent.
        outcome = attempt.outcome(gate, self._retries, self._clock.now_ms(), repeatable=True)
        if not outcome.is_final:
            return outcome.reschedule(gate, jobs)
        async with batch.ctx.completing(job) as tx:
            await self._settle(tx, job, message, subscriber, attempt.failure)
        return []

    async def _load(self, ctx: JobContext, job: Job) -> tuple[Message | None, Subscriber | None]:
        project_id = job.project_id or ""
        receiver = project_id, job.payload["subscriber_id"]
        async with ctx.reading() as tx:
            message = await store.find(tx, project_id, job.payload["message_id"])
            return message, (await self._subscribers.get_many(tx, [receiver])).get(receiver)

    async def _is_due(self, ctx: JobContext, attempt: SendAttempt, message: Message) -> bool:
        """Whether the platform must be called now; `attempt.delay_ms` is set if later."""
        is_edit = attempt.job.payload["change"] == "edit"
        if message.status == "sending":
            attempt.delay_ms = SENDING_MS
            return True
        if message.status == "queued":
            # The platform refused the message for now. It is sent as edited, or not at all if deleted.
            if is_edit or await self._skip(ctx, message):
                return False
            attempt.delay_ms = SENDING_MS
            return True
        if message.status != "sent" or message.deleted_at_ms is not None:
            return False
        return not is_edit or message.shown is not None

    async def _skip(self, ctx: JobContext, message: Message) -> bool:
        async with ctx.transaction() as tx:
            return await self._changes.skip(tx, message)

    async def _call(
        self,
        batch: OutboundBatch,
        attempt: SendAttempt,
        message: Message,
        subscriber: Subscriber | None,
    ) -> None:
        """Calls the platform, unless the change is not possible."""
        channel = batch.channel
        if channel is None or message.message_ref is None:
            attempt.failure = DeliveryError(Reason.UNKNOWN, "its channel is gone")
            return
        if subscriber is None or subscriber.bot != channel.key:
            attempt.failure = DeliveryError(
                Reason.UNKNOWN, "the person has gone over to another bot"
            )
            return
        chat_id, message_ref = subscriber.chat_id, message.message_ref
        if attempt.job.payload["change"] == "delete":
            await attempt.make(
                batch.gate, channel, chat_id, partial(channel.delete, chat_id, message_ref)
            )
            return
        content = message.content
        if message.shown and message.shown.media != content.media:
            await self._check_file(attempt, message)
        elif channel.capabilities.edit_media:
            # So that the file need not be uploaded again.
            content = replace(content, media=None)
        if attempt.failure is not None or attempt.delay_ms is not None:
            return
        if problem := channel.problem(message.content):
            attempt.failure = DeliveryError(Reason.INVALID_MESSAGE, problem)
        else:
            edit = partial(self._sender.edit, channel, chat_id, message_ref, content)
            await attempt.make(batch.gate, channel, chat_id, edit)

    async def _check_file(self, attempt: SendAttempt, message: Message) -> None:
        check = await self._files.check_of(message.content.media)
        if check is None:
            return
        attempt.failure = check.failure
        if not check.done:
            attempt.delay_ms = ceil(check.retry_in_s * 1000)

    async def _settle(
        self,
        tx: Tx,
        job: Job,
        message: Message,
        subscriber: Subscriber | None,
        failure: DeliveryError | None,
    ) -> None:
        """Records the result of a change: when it was made, or why not."""
        kind, now_ms = job.payload["change"], self._clock.now_ms()
        if failure is not None:
            error = f"{kind}: {failure.text}"
            await edit_store.record_refusal(tx, message, error, edit=kind == "edit")
            if failure.reason.should_unsubscribe and subscriber is not None:
                await self._subscribers.block(
                    tx, message.bot, subscriber.user_id, reason=str(failure.reason)
                )
        elif kind == "edit":
            await edit_store.record_edited(tx, message, now_ms)
        else:
            await edit_store.record_deleted(tx, message, now_ms)

    async def end_overdue(self, ctx: JobContext, closed: ClosedChannel) -> bool:
        """Gives up changes that have waited for a closed channel for as long as a message may. See
        `channels.health.overdue.WaitingWork`."""
        max_wait_ms = self._retries.max_wait_ms
        assert max_wait_ms is not None, "`delivery_retries` sets it"
        until_ms = self._clock.now_ms() - max_wait_ms
        if closed.since_ms > until_ms:
            return True
        failure = closed.failure(max_wait_ms)
        for _ in range(GROUPS):
            if ctx.stopping:
                return False
            async with ctx.transaction() as tx:
                jobs = await self._jobs.take_overdue(
                    tx, lane_of(closed.key), JOB, until_ms=until_ms, limit=GROUP
                )
                for job in jobs:
                    await self._end(tx, job, failure)
            if len(jobs) < GROUP:
                return True
        return False

    async def settle_dead(self, tx: Tx, job: Job, _error: str) -> None:
        """Records on the message that a change could not be made."""
        # The reason is not given to the project: it may name hosts and files of the operator.
        await self._end(tx, job, DeliveryError(Reason.UNKNOWN, "the service could not do it"))

    async def _end(self, tx: Tx, job: Job, failure: DeliveryError) -> None:
        message = await store.find(tx, job.project_id or "", job.payload["message_id"])
        if message is not None:
            await self._settle(tx, job, message, None, failure)
