"""Sends messages: identifies the recipient, renders and validates the content, and queues the delivery."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.content.outgoing import OutgoingMessage, ReplyTarget
from msgsvc_core.db import Database, Tx, WriteBatch
from msgsvc_core.db.counting import MOST_COUNTED, Count
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import NORMAL, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.tracing import current_trace_id
from msgsvc_core.messages import clicks, previews, route_moves, route_store, store
from msgsvc_core.messages.bodies import MessageQuery, SendBody
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.edits import MessageChanges, find
from msgsvc_core.messages.history import Moment, history
from msgsvc_core.messages.models import Message, PreparedMessage, PreparedRoute
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_core.routing.models import steps_to_column
from msgsvc_core.subscribers.service import Subscribers


class Messages:
    """`service.messages`."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        jobs: JobQueue,
        events: Events,
        billing: BillingGate,
        subscribers: Subscribers,
        validation: MessageValidation,
        changes: MessageChanges,
    ) -> None:
        self._clock = clock
        self._db = db
        self._jobs = jobs
        self._events = events
        self._billing = billing
        self._subscribers = subscribers
        self._validation = validation
        self.changes = changes

    async def send(self, project_id: str, body: SendBody | None = None, **fields: Any) -> Message:
        """Queues a message, in a transaction of its own; for callers in the same process.

            await service.messages.send(project_id, subscriber_id="sub_...", text="Hello")

        Raises the errors of `POST /v1/send`.
        """
        unit = WriteBatch()
        body = body or validate(SendBody, fields)
        await self._billing.check(project_id, MESSAGE)
        message = await self.add(unit, project_id, body)
        await self._db.write(unit)
        return message

    async def queue(
        self,
        tx: Tx,
        project_id: str,
        body: SendBody,
        *,
        thread: str | None = None,
        in_reply_to: ReplyTarget | None = None,
        by_person: bool = False,
    ) -> Message:
        """Queues a message in `tx`, together with the caller's other writes; into that thread of the
        recipient's chat. `in_reply_to` and `by_person` are those of `OutgoingMessage`."""
        unit = WriteBatch()
        prepared = await self.prepare(project_id, body, tx)
        content = prepared.content.in_thread(thread).replying_to(in_reply_to)
        prepared = replace(prepared, content=content.from_person() if by_person else content)
        message = self.put(unit, project_id, body, prepared)
        await tx.write(unit)
        return message

    async def add(
        self, unit: WriteBatch, project_id: str, body: SendBody, tx: Tx | None = None
    ) -> Message:
        """Adds a message and its delivery job to a batch of writes.

        Raises the errors of `POST /v1/send`. The recipient is looked up in `tx` if there is one.
        """
        return self.put(unit, project_id, body, await self.prepare(project_id, body, tx))

    async def prepare(
        self,
        project_id: str,
        body: SendBody,
        tx: Tx | None = None,
        *,
        pause: Callable[[], Awaitable[None]] | None = None,
        route_id: str | None = None,
    ) -> PreparedMessage:
        """Whether a message can be sent, and to whom. Raises the errors of `POST /v1/send`.

        A caller that prepares many at once passes `pause`, which is awaited before the long part. `route_id`
        sends the message by that route to the person of the subscriber in the body.
        """
        return await self._validation.prepare(project_id, body, tx, pause=pause, route_id=route_id)

    def put(
        self,
        unit: WriteBatch,
        project_id: str,
        body: SendBody,
        prepared: PreparedMessage,
        batch_id: str | None = None,
    ) -> Message:
        """Adds a prepared message and its delivery job to a batch of writes."""
        receiver = prepared.receiver
        now_ms = self._clock.now_ms()
        message = Message(
            project_id=project_id,
            message_id=new_id("msg"),
            subscriber_id=receiver.subscriber_id,
            channel=receiver.channel,
            bot=receiver.bot,
            status="queued",
            content=prepared.content,
            metadata=body.metadata,
            reason=None,
            error=None,
            attempts=0,
            message_ref=None,
            created_at_ms=now_ms,
            expires_at_ms=body.expires_in and now_ms + body.expires_in * 1000,
            finished_at_ms=None,
            permission=body.permission,
            batch_id=batch_id,
            trace_id=current_trace_id(),
        )
        if prepared.route is not None:
            return self._put_routed(unit, message, prepared.route, receiver.external_id)
        store.add(unit, message)
        self._jobs.add(
            unit,
            NewJob(
                JOB,
                {"message_id": message.message_id, "subscriber_id": message.subscriber_id},
                lane=lane_of(prepared.channel.key),
                priority=NORMAL,
                project_id=project_id,
            ),
        )
        return message

    def _put_routed(
        self,
        unit: WriteBatch,
        message: Message,
        route: PreparedRoute,
        external_id: str | None,
    ) -> Message:
        message = replace(
            message,
            route_id=route.route_id,
            route_steps=steps_to_column(route.steps),
            route_step=route.step,
            external_id=external_id,
        )
        store.add(unit, message)
        route_moves.add_first(unit, self._jobs, message, route.skipped)
        return message

    async def find(self, tx: Tx, project_id: str, message_id: str) -> Message:
        """Raises `NotFound`, also for another project's id."""
        (message,) = await route_store.with_past_steps(tx, [await find(tx, project_id, message_id)])
        return message

    async def get_many(
        self, tx: Tx, project_id: str, message_ids: Sequence[str]
    ) -> dict[str, Message]:
        """Existing messages of a project, by their ids."""
        found = await store.find_many(tx, [(project_id, each) for each in message_ids])
        return {message.message_id: message for message in found}

    async def find_by_ref(
        self, tx: Tx, bot: str, chat_id: str, user_id: str, message_ref: str
    ) -> Message | None:
        """The message to a user that has the platform's id `message_ref` in a bot's chat, of any project;
        `bot` is the channel's key."""
        return await clicks.find_by_ref(tx, self._subscribers, bot, chat_id, user_id, message_ref)

    async def page(
        self, tx: Tx, project_id: str, query: MessageQuery, *, ascending: bool = False
    ) -> list[Message]:
        """Up to one more than `query.limit`, newest or oldest first, to show whether there are more."""
        if query.channel is not None:
            await self._subscribers.check_channel(tx, project_id, query.channel)
        found = await store.list_page(
            tx, project_id, query, query.after, query.fetch_limit, ascending=ascending
        )
        return await route_store.with_past_steps(tx, found)

    async def count(
        self, tx: Tx, project_id: str, query: MessageQuery, limit: int = MOST_COUNTED
    ) -> Count:
        """How many match the filters, of at most `limit` that are looked at."""
        return await store.count(tx, project_id, query, limit)

    async def history(
        self, tx: Tx, project_id: str, subscriber_id: str, query: PageQuery
    ) -> tuple[list[Moment], str | None]:
        """A page of a subscriber's history, newest first, and the cursor of the next page."""
        return await history(self._events, tx, project_id, subscriber_id, query)

    def previews(
        self, project_id: str, message: OutgoingMessage, channels: Collection[str] | None = None
    ) -> list[previews.Preview]:
        """Previews of a message on the project's channels, or on those in `channels`."""
        return self._validation.previews(project_id, message, channels)

    async def button_pressed(self, ctx: InboundContext) -> None:
        """Emits `button.clicked` for a press on a button of a project's message."""
        await clicks.button_pressed(
            ctx, jobs=self._jobs, subscribers=self._subscribers, events=self._events
        )

    def check_content(self, channel: Channel, content: OutgoingMessage) -> None:
        """Raises `ValidationFailed` for a message that exceeds the limits, or that the channel does not
        support."""
        self._validation.check_content(channel, content)

    def check_size(self, content: OutgoingMessage) -> None:
        """Checks the limits of the settings. Raises `ValidationFailed`."""
        self._validation.check_size(content)
