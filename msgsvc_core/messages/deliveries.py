"""Messages that are being delivered, and the reasons for skipping them."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.outbound.gates import OutboundBatch
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy, SendAttempt
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs.contract import Job, exponential
from msgsvc_core.messages import store
from msgsvc_core.messages.models import Message
from msgsvc_core.routing.progress import Obstacle, find_obstacle
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers

if TYPE_CHECKING:
    from msgsvc_core.files.media_checks import Check


#: Seconds to wait after the n-th failed attempt of a message: 1, 2, 4 ... up to 5 minutes, with jitter.
BACKOFF = exponential(first_s=1, factor=2, max_s=300)


def delivery_retries(limits: LimitSettings) -> RetryPolicy:
    """The retry policy of messages and of their edits."""
    return RetryPolicy(BACKOFF, limits.delivery_attempts, limits.delivery_hours * 3600 * 1000)


class Delivery(SendAttempt):
    """A message that is being delivered: its job, its recipient, and the result of the attempt."""

    __slots__ = ("file", "marked", "message", "subscriber")

    def __init__(self, job: Job, message: Message, subscriber: Subscriber | None) -> None:
        super().__init__(
            job,
            attempts=job.attempts,
            calls=message.attempts + 1,
            rate_limited_since_ms=job.refused_from_ms,
            was_in_doubt=message.status == "sending" or message.reason == Reason.UNKNOWN,
        )
        self.message = message
        self.subscriber = subscriber
        #: Whether the message is marked as `sending` by this attempt, which alone may call the platform.
        self.marked = False
        #: The check of the message's file, if it has one.
        self.file: Check | None = None

    @property
    def chat_id(self) -> str:
        assert self.subscriber is not None, "what is due has a recipient"
        return self.subscriber.chat_id


class DeliveryLoader:
    """Loads the messages of jobs, and their recipients."""

    def __init__(self, *, db: Database, subscribers: Subscribers) -> None:
        self._db = db
        self._subscribers = subscribers

    async def load(self, jobs: Sequence[Job]) -> list[Delivery]:
        """The deliveries of the jobs; deleted messages are omitted, and those that are at another step of
        their route."""
        return await self._db.read_inline(partial(self.load_in, jobs=jobs))

    async def load_in(self, tx: Tx, jobs: Sequence[Job]) -> list[Delivery]:
        """As `load`, in a transaction."""
        keys = {(job.project_id or "", job.payload["message_id"]): job for job in jobs}
        messages = await store.find_many(tx, list(keys))
        receivers = {(message.project_id, message.subscriber_id) for message in messages}
        subscribers = await self._subscribers.get_many(tx, list(receivers))
        loaded = {message.key: message for message in messages}
        return [
            Delivery(
                job,
                loaded[key],
                subscribers.get((loaded[key].project_id, loaded[key].subscriber_id)),
            )
            for key, job in keys.items()
            if key in loaded and is_of_step(job, loaded[key])
        ]


def is_of_step(job: Job, message: Message) -> bool:
    """Whether a message with a route is still at the step whose delivery this is."""
    return bool(job.payload.get("step") == message.route_step and message.waits_for is None)


def is_due(batch: OutboundBatch, delivery: Delivery, now_ms: int) -> bool:
    """Whether the message must still be sent; if it is queued, `obstacle` says why not."""
    status = delivery.message.status
    # Another runner had marked it and crashed.
    is_open = status == "queued" or (status == "sending" and batch.repeatable)
    return is_open and obstacle(batch, delivery, now_ms) is None


def obstacle(batch: OutboundBatch, delivery: Delivery, now_ms: int) -> Obstacle | None:
    """Why a queued message is skipped; None if not."""
    return why_skipped(delivery.message, delivery.subscriber, batch.channel, now_ms)


def why_skipped(
    message: Message, subscriber: Subscriber | None, channel: Channel | None, now_ms: int
) -> Obstacle | None:
    """Why a queued message to a subscriber would be skipped now; None if not."""
    if subscriber is None:
        return find_obstacle(status=None)
    permission = message.permission
    return find_obstacle(
        status=subscriber.status,
        # One who was split off: the message is for the rest of the person.
        is_same_person=message.external_id in {None, subscriber.external_id},
        is_expired=message.expires_at_ms is not None and message.expires_at_ms <= now_ms,
        has_channel=channel is not None,
        missing_permission=permission if permission not in subscriber.permissions else None,
        has_same_bot=channel is None or subscriber.bot == channel.key,
    )
