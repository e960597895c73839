"""Messages on their way: a batch of a channel's lane, and what stands in the way of each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outbound import OutboundGate
from msgsvc_core.jobs.contract import Job, JobContext
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.files.media_checks import Check


@dataclass(slots=True, eq=False)
class Delivery:
    """A message on its way: its job, its receiver, and in the end its outcome."""

    job: Job
    message: Message
    subscriber: Subscriber | None
    marked: bool = False
    message_ref: str | None = None
    failure: DeliveryError | None = None
    #: The bot may make no call now, and made none for this.
    held: bool = False
    #: What is known of the message's file, if it has one.
    file: "Check | None" = None

    @property
    def in_doubt(self) -> bool:
        """Whether an earlier try may have shown the message, or the last one."""
        before = self.message.status == "sending" or self.message.reason == Reason.UNKNOWN
        return before or (self.failure is not None and self.failure.in_doubt)

    @property
    def chat_id(self) -> str:
        assert self.subscriber is not None, "what is due has a receiver"
        return self.subscriber.chat_id


@dataclass(frozen=True, slots=True)
class Round:
    """What a batch's deliveries need: the channel of its lane, and the line to it."""

    ctx: JobContext
    channel: Channel | None
    line: OutboundGate

    @property
    def repeats(self) -> bool:
        """Whether what is in doubt may be sent again: see `Capabilities.repeatable`."""
        return self.channel is not None and self.channel.capabilities.repeatable


def is_due(this: Round, delivery: Delivery, now_ms: int) -> bool:
    """Whether the message is still to be sent; `obstacle` says why not, if it is still queued."""
    status = delivery.message.status
    # What another runner had begun, and did not live to end.
    is_open = status == "queued" or (status == "sending" and this.repeats)
    return is_open and obstacle(this, delivery, now_ms) is None


def obstacle(this: Round, delivery: Delivery, now_ms: int) -> str | None:
    """Why a queued message is skipped; None if it is not."""
    message, subscriber = delivery.message, delivery.subscriber
    if subscriber is None or subscriber.status != "active":
        return "not subscribed"
    if message.expires_at_ms is not None and message.expires_at_ms <= now_ms:
        return "expired"
    if this.channel is None:
        return "its channel is gone"
    if message.permission not in {None, *subscriber.permissions}:
        return f"the permission {message.permission!r} is not granted"
    if subscriber.bot != this.channel.key:
        return "the person has gone over to another bot"
    return None
