"""Messages on their way: a batch of a channel's lane, and what stands in the way of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lines import Line
from msgsvc_core.jobs.contract import Job, JobContext
from msgsvc_core.messages import store
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.files.media_checks import Check
    from msgsvc_core.service import Service


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
    line: Line

    @property
    def service(self) -> "Service":
        return self.ctx.service

    @property
    def repeats(self) -> bool:
        """Whether what is in doubt may be sent again: see `Capabilities.repeatable`."""
        return self.channel is not None and self.channel.capabilities.repeatable


async def load(service: "Service", jobs: Sequence[Job]) -> list[Delivery]:
    """What the jobs are about; what is gone is left out."""
    keys = {(job.project_id or "", job.payload["message_id"]): job for job in jobs}
    messages = await service.db.ask_few(lambda tx: store.find_many(tx, list(keys)))
    receivers = {(message.project_id, message.subscriber_id) for message in messages}
    subscribers = await service.db.ask_few(
        lambda tx: service.subscribers.find_many(tx, list(receivers))
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


def is_due(this: Round, delivery: Delivery) -> bool:
    """Whether the message is still to be sent; `obstacle` says why not, if it is still queued."""
    status = delivery.message.status
    # What another runner had begun, and did not live to end.
    is_open = status == "queued" or (status == "sending" and this.repeats)
    return is_open and obstacle(this, delivery) is None


def obstacle(this: Round, delivery: Delivery) -> str | None:
    """Why a queued message is skipped; None if it is not."""
    message, subscriber = delivery.message, delivery.subscriber
    if subscriber is None or subscriber.status != "active":
        return "not subscribed"
    now_ms = this.service.clock.now_ms()
    if message.expires_at_ms is not None and message.expires_at_ms <= now_ms:
        return "expired"
    if this.channel is None:
        return "its channel is gone"
    if message.permission not in {None, *subscriber.permissions}:
        return f"the permission {message.permission!r} is not granted"
    if subscriber.bot != this.channel.key:
        return "the person has gone over to another bot"
    return None
