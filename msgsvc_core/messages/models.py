"""Messages as the service knows them."""

from typing import Any

from msgsvc_core.channels.contract import Channel
from msgsvc_core.content.outgoing import (
    OutgoingMessage,
)
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.fields import Awaited, CopyStatus, MessageStatus
from msgsvc_core.routing.models import RouteStep, SkippedStep, read_steps
from msgsvc_core.subscribers.models import Recipient


@value_object
class MessageCopy:
    """A step of a message's route that is over, or waits: the message as it was sent there, or why it was
    not."""

    step: int
    channel: str
    subscriber_id: str | None
    bot: str | None
    status: CopyStatus
    reason: str | None
    error: str | None
    message_ref: str | None
    finished_at_ms: int
    delivered_at_ms: int | None = None
    read_at_ms: int | None = None


@value_object
class Message:
    """A message and what is known of its delivery; `bot` is the key of the channel that sends it."""

    project_id: str
    message_id: str
    subscriber_id: str
    channel: str
    bot: str
    status: MessageStatus
    content: OutgoingMessage
    metadata: dict[str, Any] | None
    reason: str | None
    error: str | None
    attempts: int
    message_ref: str | None
    created_at_ms: int
    expires_at_ms: int | None
    finished_at_ms: int | None
    permission: str | None = None
    batch_id: str | None = None
    edited_at_ms: int | None = None
    deleted_at_ms: int | None = None
    #: What the recipient sees while an edit is pending; None if that is `content`.
    shown: OutgoingMessage | None = None
    #: The mailing that the message belongs to.
    job_id: str | None = None
    #: The recorded trace of the request, or of the mailing's run, that sent it.
    trace_id: str | None = None
    #: When the platform reported that it arrived, and that it was read.
    delivered_at_ms: int | None = None
    read_at_ms: int | None = None
    #: The route, its steps when the message was accepted (`routing.models.read_steps`), and the number of the
    #: one it is at, from 0; None without a route. The recipient and the bot are those of the step.
    route_id: str | None = None
    route_steps: str | None = None
    route_step: int | None = None
    #: What it waits for while it is `sending`, and no call is in progress.
    waits_for: Awaited | None = None
    #: Whom a message with a route is for. None of a person without such an id, and of older messages: it is
    #: for whoever its subscriber is.
    external_id: str | None = None
    #: The steps that are over; only loaded for answers.
    past_steps: tuple[MessageCopy, ...] = ()

    @property
    def steps(self) -> tuple[RouteStep, ...]:
        """The steps of its route."""
        return () if self.route_steps is None else read_steps(self.route_steps)

    @property
    def key(self) -> tuple[str, str]:
        return self.project_id, self.message_id


@value_object
class PreparedRoute:
    """The route of a prepared message, the step at which it begins, and those before it, which are passed
    over."""

    route_id: str
    steps: tuple[RouteStep, ...]
    step: int
    skipped: tuple[SkippedStep, ...]


@value_object
class PreparedMessage:
    """What a body comes to: who gets it, by which bot, and what they are shown."""

    receiver: Recipient
    channel: Channel
    content: OutgoingMessage
    route: PreparedRoute | None = None


@value_object
class FinalStatus:
    """The last status of a message; `ref` is what the platform knows it by."""

    message: Message
    status: MessageStatus
    reason: str | None = None
    error: str | None = None
    ref: str | None = None
