"""Delivers queued messages: a batch of one channel's lane at a time.

A message is marked `sending` before the platform is called, and gets its outcome afterwards. If the
process dies between the two, nobody knows whether the person saw it; it then becomes `unknown` and is
never sent again (API, "Broadcasts": nothing is sent twice silently).
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.channels.calls import channel_of
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.db import Tx
from msgsvc_core.events import NewEvent
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, exponential
from msgsvc_core.messages import store
from msgsvc_core.messages.models import Ending, Message, MessageStatus
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.service import Service

JOB = "message.deliver"

#: Seconds to wait after the n-th failed try of a message: 1, 2, 4 ... at most 5 minutes.
BACKOFF = exponential(first_s=1, factor=2, most_s=300)

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Delivery:
    """A message on its way: its job, its receiver, and in the end its outcome.

    `channel` is the bot of the job's lane; None if it is gone.
    """

    job: Job
    channel: Channel | None
    message: Message
    subscriber: Subscriber | None
    marked: bool = False
    message_ref: str | None = None
    failure: DeliveryError | None = None

    @property
    def chat_id(self) -> str:
        assert self.subscriber is not None, "what is due has a receiver"
        return self.subscriber.chat_id


async def deliver(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Sends a batch in rounds: chats side by side, one message of each chat at a time.

    So what is marked `sending` is in the platform's hands, and a crash leaves no more than one
    message of a chat in doubt. Batches that are under way at once share no receiver.
    """
    waiting = list(jobs)
    channels = ctx.service.channels
    async with (
        channels.use(channel_of(jobs[0].lane)) as channel,
        channels.turns.take(map(_receiver_of, jobs)),
    ):
        while waiting:
            waiting = await _round(ctx, channel, waiting)


def _receiver_of(job: Job) -> tuple[str | None, str]:
    # A job that an earlier release wrote names no receiver, and goes in the order of its claim.
    return job.project_id, job.payload.get("subscriber_id", job.payload["message_id"])


async def _round(ctx: JobContext, channel: Channel | None, jobs: Sequence[Job]) -> list[Job]:
    """Sends the first message of each chat; returns the jobs that are still to be done."""
    service = ctx.service
    chats = await _begin(ctx, await _load(service, channel, jobs))
    await asyncio.gather(*(_send(first) for first, *_ in chats if first.marked))
    final = [first for first, *_ in chats if first.marked and not _may_retry(service, first)]
    if final:
        async with ctx.completing(*(delivery.job for delivery in final)) as tx:
            await _settle(service, tx, final)
    left: list[Job] = []
    for first, *rest in chats:
        if _may_retry(service, first):
            await _put_back(ctx, first, rest)
        else:
            left += [delivery.job for delivery in rest]
    return left


async def _begin(ctx: JobContext, deliveries: Sequence[Delivery]) -> list[list[Delivery]]:
    """Settles what is not to be sent; returns the others by chat, the first of each marked."""
    service = ctx.service
    chats: dict[str, list[Delivery]] = defaultdict(list)
    not_due: list[Delivery] = []
    for delivery in deliveries:
        if _is_due(service, delivery):
            chats[delivery.chat_id].append(delivery)
        else:
            not_due.append(delivery)
    firsts = [chat[0] for chat in chats.values()]
    async with ctx.completing(*(delivery.job for delivery in not_due)) as tx:
        await _settle_unsent(service, tx, not_due)
        marked = await store.mark_sending(tx, [first.message for first in firsts])
    for first in firsts:
        # One that could not be marked is not ours any more: another runner has it.
        first.marked = first.message.message_id in marked
    return list(chats.values())


async def _load(service: "Service", channel: Channel | None, jobs: Sequence[Job]) -> list[Delivery]:
    keys = {(job.project_id or "", job.payload["message_id"]): job for job in jobs}
    async with service.db.read() as tx:
        messages = await store.find_many(tx, list(keys))
        receivers = {(message.project_id, message.subscriber_id) for message in messages}
        subscribers = await service.subscribers.find_many(tx, list(receivers))
    loaded = {message.key: message for message in messages}
    return [
        Delivery(
            job,
            channel,
            loaded[key],
            subscribers.get((loaded[key].project_id, loaded[key].subscriber_id)),
        )
        for key, job in keys.items()
        if key in loaded
    ]


def _is_due(service: "Service", delivery: Delivery) -> bool:
    """Whether the message is still to be sent; `_settle_unsent` says what happens otherwise."""
    return delivery.message.status == "queued" and _obstacle(service, delivery) is None


def _obstacle(service: "Service", delivery: Delivery) -> str | None:
    """Why a queued message is skipped; None if it is not."""
    message, subscriber = delivery.message, delivery.subscriber
    if subscriber is None or subscriber.status != "active":
        return "not subscribed"
    if message.expires_at_ms is not None and message.expires_at_ms <= service.clock.now_ms():
        return "expired"
    if delivery.channel is None:
        return "its channel is gone"
    if subscriber.bot != delivery.channel.key:
        return "the person has gone over to another bot"
    return None


async def _settle_unsent(service: "Service", tx: Tx, deliveries: Sequence[Delivery]) -> None:
    """Ends messages that are skipped, and those whose sending somebody else did not live to end."""
    error = "the service stopped while the platform was being called"
    endings: list[Ending] = []
    in_doubt: list[Delivery] = []
    for delivery in deliveries:
        message = delivery.message
        if message.status == "sending":
            endings.append(Ending(message, "unknown", reason="unknown", error=error))
            in_doubt.append(delivery)
        elif message.status == "queued":
            endings.append(Ending(message, "skipped", error=_obstacle(service, delivery)))
    ended = await store.finish(tx, endings, service.clock.now_ms())
    tx.on_commit(partial(_count, service, endings))
    failure = DeliveryError(Reason.UNKNOWN, error)
    await service.events.emit_many(
        tx,
        [_failed(each, failure) for each in in_doubt if each.message.message_id in ended],
    )


async def _send(delivery: Delivery) -> None:
    channel = delivery.channel
    assert channel is not None, "what is due has a channel"
    try:
        delivery.message_ref = await channel.send(delivery.chat_id, delivery.message.content)
    except DeliveryError as error:
        delivery.failure = error
    except Exception as error:
        log.exception("channel_broke_contract", channel=channel.key)
        delivery.failure = DeliveryError(Reason.UNKNOWN, type(error).__name__)


def _may_retry(service: "Service", delivery: Delivery) -> bool:
    return (
        delivery.failure is not None
        and delivery.failure.reason.retryable
        and delivery.job.attempts < service.settings.limits.delivery_attempts
    )


async def _put_back(ctx: JobContext, delivery: Delivery, rest: Sequence[Delivery]) -> None:
    """Has a message tried again later, and the `rest` of its chat after it, in their order."""
    failure = delivery.failure
    assert failure is not None
    after_s = failure.retry_after_s
    if after_s is None:
        after_s = BACKOFF(delivery.job.attempts)
    async with ctx.rescheduling(delivery.job, after_s=after_s) as tx:
        await store.mark_queued(tx, delivery.message, failure.text)
    for follower in rest:
        async with ctx.rescheduling(follower.job, after_s=after_s, counts=False):
            pass


async def _settle(service: "Service", tx: Tx, deliveries: Sequence[Delivery]) -> None:
    """Writes what became of messages that were sent, or failed for good."""
    endings = [_ending(delivery) for delivery in deliveries]
    await store.finish(tx, endings, service.clock.now_ms())
    tx.on_commit(partial(_count, service, endings))
    await service.events.emit_many(
        tx,
        [
            _succeeded(delivery)
            if delivery.failure is None
            else _failed(delivery, delivery.failure)
            for delivery in deliveries
        ],
    )
    for delivery in deliveries:
        failure, subscriber = delivery.failure, delivery.subscriber
        if failure is not None and failure.reason.should_unsubscribe and subscriber is not None:
            await service.subscribers.block(
                tx, delivery.message.bot, subscriber.user_id, reason=str(failure.reason)
            )


def _ending(delivery: Delivery) -> Ending:
    failure = delivery.failure
    if failure is None:
        return Ending(delivery.message, "sent", ref=delivery.message_ref)
    return Ending(delivery.message, "failed", reason=str(failure.reason), error=failure.text)


def _count(service: "Service", endings: Sequence[Ending]) -> None:
    counts = Counter((end.message.bot, end.status, end.reason or "") for end in endings)
    for (channel, status, reason), count in counts.items():
        service.metrics.count_deliveries(count, channel, status, reason)


def _succeeded(delivery: Delivery) -> NewEvent:
    message = delivery.message
    return NewEvent(
        message.project_id,
        "delivery.success",
        {"message_id": message.message_id, "metadata": message.metadata},
        delivery.subscriber,
    )


def _failed(delivery: Delivery, failure: DeliveryError) -> NewEvent:
    reason = failure.reason
    # The spec gives `unknown` no flag: it needs a person's look.
    flags = (
        {"retryable": None, "should_unsubscribe": None}
        if reason is Reason.UNKNOWN
        else {"retryable": reason.retryable, "should_unsubscribe": reason.should_unsubscribe}
    )
    return NewEvent(
        delivery.message.project_id,
        "delivery.failed",
        {
            "message_id": delivery.message.message_id,
            "metadata": delivery.message.metadata,
            "reason": str(reason),
            **flags,
            "error": failure.text,
        },
        delivery.subscriber,
    )


async def settle_dead(service: "Service", tx: Tx, job: Job, error: str) -> None:
    """Ends a message whose job can't be run: nobody may wait for it for good.

    What was in the platform's hands is `unknown`, as after a crash; the rest has not been sent.
    """
    message = await store.find(tx, job.project_id or "", job.payload["message_id"])
    if message is None:
        return
    text = f"the service could not deliver it: {error}"
    status: MessageStatus = "unknown" if message.status == "sending" else "failed"
    endings = [Ending(message, status, reason="unknown", error=text)]
    if await store.finish(tx, endings, service.clock.now_ms()):
        receiver = (message.project_id, message.subscriber_id)
        found = await service.subscribers.find_many(tx, [receiver])
        delivery = Delivery(job, None, message, found.get(receiver))
        await service.events.emit_many(tx, [_failed(delivery, DeliveryError(Reason.UNKNOWN, text))])
        tx.on_commit(partial(_count, service, endings))


SPEC = JobSpec(JOB, deliver, on_dead=settle_dead)
