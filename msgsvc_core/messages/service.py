"""The rules of sending: who gets what, and what is refused before a platform is called."""

import json
from typing import TYPE_CHECKING, Any

from msgsvc_core.api.validation import validate
from msgsvc_core.channels.calls import lane_of
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.outgoing import OutgoingMessage
from msgsvc_core.db import Tx, Unit
from msgsvc_core.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.ids import new_id
from msgsvc_core.jobs.contract import NORMAL, NewJob
from msgsvc_core.messages import clicks, store
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.models import METADATA_BYTES, Message, MessageQuery, SendBody
from msgsvc_core.subscribers.models import Receiver

if TYPE_CHECKING:
    from msgsvc_core.service import Service


class Messages:
    """`service.messages`."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    async def send(self, project_id: str, body: SendBody | None = None, **fields: Any) -> Message:
        """Queues a message, in a transaction of its own; for callers in the same process.

            await service.messages.send(project_id, subscriber_id="sub_...", text="Hello")

        Raises the errors of `POST /v1/send`.
        """
        unit = Unit()
        message = await self.add(unit, project_id, body or validate(SendBody, fields))
        await self._service.db.write(unit)
        return message

    async def queue(self, tx: Tx, project_id: str, body: SendBody) -> Message:
        """Queues a message in `tx`, along with what else is written there."""
        unit = Unit()
        message = await self.add(unit, project_id, body, tx)
        await tx.write(unit)
        return message

    async def add(
        self, unit: Unit, project_id: str, body: SendBody, tx: Tx | None = None
    ) -> Message:
        """Adds a message and the job that delivers it to what is written together.

        Raises the errors of `POST /v1/send`. The receiver is looked for in `tx` if there is one.
        """
        receiver = await self._service.subscribers.receiver(
            project_id,
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            channel=body.channel,
            tx=tx,
        )
        content = body.to_message()
        channel = await self._bot_of(receiver)
        self._check(channel, content, body)
        now_ms = self._service.clock.now_ms()
        message = Message(
            project_id=project_id,
            message_id=new_id("msg"),
            subscriber_id=receiver.subscriber_id,
            channel=receiver.channel,
            bot=receiver.bot,
            status="queued",
            content=content,
            metadata=body.metadata,
            reason=None,
            error=None,
            attempts=0,
            message_ref=None,
            created_at_ms=now_ms,
            expires_at_ms=body.expires_in and now_ms + body.expires_in * 1000,
            finished_at_ms=None,
        )
        store.add(unit, message)
        self._service.jobs.add(
            unit,
            NewJob(
                JOB,
                {"message_id": message.message_id, "subscriber_id": message.subscriber_id},
                lane=lane_of(channel.key),
                priority=NORMAL,
                project_id=project_id,
            ),
        )
        return message

    async def find(self, tx: Tx, project_id: str, message_id: str) -> Message:
        """Raises `NotFound`, for another project's id as well."""
        message = await store.find(tx, project_id, message_id)
        if message is None:
            raise NotFound(f"there is no message {message_id!r}")
        return message

    async def page(self, tx: Tx, project_id: str, query: MessageQuery) -> list[Message]:
        """Up to one more than `query.limit`, newest first, so that the caller sees if more follow."""
        return await store.list_page(tx, project_id, query, query.after, query.most)

    async def button_pressed(self, ctx: InboundContext) -> None:
        """A press on a button of a project's own message becomes `button.clicked`."""
        await clicks.button_pressed(self._service, ctx)

    async def _bot_of(self, receiver: Receiver) -> Channel:
        """The bot that the receiver started last: no other may write to them."""
        channel = await self._service.channels.find(receiver.bot)
        if channel is None:
            raise Conflict(
                f"the bot by which this subscriber came to {receiver.channel!r} is gone;"
                " they have to start the one that is there now"
            )
        return channel

    def _check(self, channel: Channel, content: OutgoingMessage, body: SendBody) -> None:
        """Whether the message keeps to the limits, and the channel takes it."""
        self._check_size(content)
        if problem := channel.problem(content):
            raise ValidationFailed(problem)
        if body.metadata is not None and len(json.dumps(body.metadata)) > METADATA_BYTES:
            raise ValidationFailed(f"metadata: must be at most {METADATA_BYTES} bytes as JSON")

    def _check_size(self, content: OutgoingMessage) -> None:
        """Limits of the spec (settings)."""
        limits = self._service.settings.limits
        if len(content.text) > limits.text_length:
            raise ValidationFailed(f"text: must be at most {limits.text_length} characters")
        if len(content.buttons) > limits.button_rows:
            raise ValidationFailed(f"buttons: at most {limits.button_rows} rows")
        for number, row in enumerate(content.buttons):
            if not 1 <= len(row) <= limits.buttons_per_row:
                raise ValidationFailed(f"buttons[{number}]: 1-{limits.buttons_per_row} buttons")
