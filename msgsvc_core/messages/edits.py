"""Edits and deletions of messages: sent ones by a job of the channel's lane, after their delivery; queued
ones immediately."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import NORMAL, URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.messages import edit_store, route_store, store
from msgsvc_core.messages.bodies import EditMessageBody
from msgsvc_core.messages.counting import OutcomeCounter
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import FinalStatus, Message
from msgsvc_core.messages.outcomes import skipped_event
from msgsvc_core.routing.models import SkippedReason
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.telemetry import Metrics

#: The job that edits or deletes what was sent; `changing` runs it.
JOB = "message.change"

Change = Literal["edit", "delete"]


async def find(tx: Tx, project_id: str, message_id: str) -> Message:
    """Raises `NotFound`, also for another project's id."""
    message = await store.find(tx, project_id, message_id)
    if message is None:
        raise NotFound("there is no message {message_id!r}", message_id=message_id)
    return message


class MessageChanges:
    """`service.messages.changes`."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        metrics: Metrics,
        channels: Channels,
        subscribers: Subscribers,
        batches: OutcomeCounter,
        limits: MessageLimits,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._metrics = metrics
        self._subscribers = subscribers
        self._channels = channels
        self._batches = batches
        self._limits = limits

    async def edit(
        self, tx: Tx, project_id: str, message_id: str, body: EditMessageBody
    ) -> Message:
        """Changes the content of a message. Repeating the same edit has no effect.

        Raises `NotFound`, `ValidationFailed` for content that the channel does not support, and `Conflict`
        for a message that can't be edited: its channel can't, or it was deleted, is being deleted, or was
        never sent.
        """
        message = await self._locked(tx, project_id, message_id)
        if message.route_id is not None:
            raise Conflict("a message that is sent by a route can't be edited: it may have copies")
        if await self._jobs.has_open(tx, JOB, _deletion(message)):
            raise Conflict("the message is being deleted")
        content = body.changed(message.content)
        if content == message.content:
            return message
        channel = await self._channels.find(message.bot)
        if channel is None:
            raise Conflict("the bot of this message is gone")
        self._limits.check_content(channel, content)
        problem = _edit_problem(channel, message, new_media=content.media != message.content.media)
        statuses = ("queued",) if problem else ("queued", "sending", "sent")
        now_ms = self._clock.now_ms()
        status = await edit_store.change_content(tx, message, content, statuses, now_ms)
        if status is None:
            now = await find(tx, project_id, message_id)
            raise Conflict(_why_not(now) or problem)
        if status != "queued":
            await self._enqueue(tx, message, "edit")
        return await find(tx, project_id, message_id)

    async def delete(self, tx: Tx, project_id: str, message_id: str) -> Message:
        """Cancels a queued message, or removes a sent one from the chat. Repeating it has no effect.

        Raises `NotFound`, and `Conflict` as `edit` does.
        """
        message = await self._locked(tx, project_id, message_id)
        if message.deleted_at_ms is not None:
            return message
        if message.route_id is not None and (
            message.status in {"sending", "sent"} or await route_store.has_sent_copy(tx, message)
        ):
            raise Conflict(
                "a message that is sent by a route can't be deleted any more: it may have copies"
            )
        if not await self.skip(tx, message):
            channel = await self._channels.find(message.bot)
            if channel is None:
                raise Conflict("the bot of this message is gone")
            if why := _why_not(message):
                raise Conflict(why)
            if not channel.capabilities.delete:
                raise Conflict("this channel can't delete messages that were sent")
            await self._enqueue(tx, message, "delete")
        return await find(tx, project_id, message_id)

    async def skip(self, tx: Tx, message: Message) -> bool:
        """Deletes a message that is still queued; False if it is not."""
        now_ms = self._clock.now_ms()
        if not await edit_store.delete_queued(tx, message, now_ms):
            return False
        reason = str(SkippedReason.CANCELLED)
        ending = FinalStatus(message, "skipped", reason=reason, error="deleted")
        if await store.finish(tx, [ending], now_ms):
            recipient = message.project_id, message.subscriber_id
            person = (await self._subscribers.get_many(tx, [recipient])).get(recipient)
            await self._events.emit_many(tx, [skipped_event(ending, person)])
            count = self._metrics.count_deliveries
            tx.on_commit(partial(count, 1, message.bot, "skipped", reason))
            await self._batches.count(tx, [ending])
        return True

    async def blank(self, tx: Tx, project_id: str, message_ids: Sequence[str]) -> int:
        """Deletes the content of messages, for the erasure of what they copy; queued ones are not sent.
        Messages in recipients' chats remain there.

        Returns how many are being sent just now, and must be blanked later.
        """
        keys = [(project_id, message_id) for message_id in sorted(message_ids)]
        for message in await store.find_many(tx, keys):
            if message.status == "queued":
                await tx.lock(f"message {message.message_id}")
                await self.skip(tx, message)
        await edit_store.blank(tx, project_id, message_ids)
        now = await store.find_many(tx, keys)
        return sum(message.status in {"queued", "sending"} for message in now)

    async def of_mailing(
        self, tx: Tx, project_id: str, job_id: str, after: str, most: int
    ) -> list[str]:
        """Up to `most` ids of a mailing's messages, in order, after the id `after`."""
        return await edit_store.of_mailing(tx, project_id, job_id, after, most)

    async def _locked(self, tx: Tx, project_id: str, message_id: str) -> Message:
        """Locks the message until the transaction ends."""
        await tx.lock(f"message {message_id}")
        return await find(tx, project_id, message_id)

    async def _enqueue(self, tx: Tx, message: Message, change: Change) -> None:
        is_deletion = change == "delete"
        await self._jobs.enqueue(
            tx,
            NewJob(
                JOB,
                {
                    "message_id": message.message_id,
                    "subscriber_id": message.subscriber_id,
                    "change": change,
                },
                lane=lane_of(message.bot),
                # A deletion does not wait for an edit, which may wait minutes for the host of its file.
                priority=URGENT if is_deletion else NORMAL,
                key=_deletion(message) if is_deletion else None,
                project_id=message.project_id,
            ),
        )


def _deletion(message: Message) -> str:
    """The key of the job that deletes a message: there is one at a time."""
    return f"delete {message.message_id}"


def _edit_problem(channel: Channel, message: Message, *, new_media: bool) -> str | None:
    """Why the channel can't change the content of a sent message."""
    takes = channel.capabilities
    if not takes.edit:
        return "this channel can't edit messages that were sent"
    if new_media and not takes.edit_media:
        return "media: this channel can't change the file of a message that was sent"
    return None


def _why_not(message: Message) -> str | None:
    """Why the message can't be changed on any channel."""
    if message.deleted_at_ms is not None:
        return "the message was deleted"
    if message.status in {"failed", "skipped"}:
        return f"the message was not sent: it is {message.status}"
    if message.status == "unknown":
        return "it is not known whether the message was sent, nor how to find it in the chat"
    return None
