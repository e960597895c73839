"""Delivers queued messages: a batch of one channel's lane at a time.

A message is marked `sending` before the platform is called, and gets its outcome afterwards. If the
process dies between the two, nobody knows whether the person saw it; it then becomes `unknown` and is
never sent again (API, "Broadcasts": nothing is sent twice silently).
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from msgsvc_core.channels.contract import DeliveryError, Reason
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, exponential
from msgsvc_core.messages import store
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.service import Service

JOB = "message.deliver"

#: Seconds to wait after the n-th failed try of a message: 1, 2, 4 ... at most 5 minutes.
BACKOFF = exponential(first_s=1, factor=2, most_s=300)

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Delivery:
    """A message on its way: its job, its receiver, and in the end its outcome."""

    job: Job
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
    message of a chat in doubt.
    """
    waiting = list(jobs)
    while waiting:
        waiting = await _round(ctx, waiting)


async def _round(ctx: JobContext, jobs: Sequence[Job]) -> list[Job]:
    """Sends the first message of each chat; returns the jobs that are still to be done."""
    service = ctx.service
    chats = await _begin(ctx, await _load(service, jobs))
    await asyncio.gather(*(_send(service, first) for first, *_ in chats if first.marked))
    final = [first for first, *_ in chats if first.marked and not _may_retry(service, first)]
    if final:
        async with ctx.completing(*(delivery.job for delivery in final)) as tx:
            for delivery in final:
                await _settle(service, tx, delivery)
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
        for delivery in not_due:
            await _settle_unsent(service, tx, delivery)
        marked = await store.mark_sending(tx, [first.message for first in firsts])
    for first in firsts:
        # One that could not be marked is not ours any more: another runner has it.
        first.marked = first.message.message_id in marked
    return list(chats.values())


async def _load(service: "Service", jobs: Sequence[Job]) -> list[Delivery]:
    keys = {(job.project_id or "", job.payload["message_id"]): job for job in jobs}
    async with service.db.read() as tx:
        messages = await store.find_many(tx, list(keys))
        by_project: dict[str, list[str]] = defaultdict(list)
        for message in messages:
            by_project[message.project_id].append(message.subscriber_id)
        subscribers: dict[str, Subscriber] = {}
        for project_id, ids in by_project.items():
            subscribers |= await service.subscribers.find_many(tx, project_id, ids)
    loaded = {(message.project_id, message.message_id): message for message in messages}
    return [
        Delivery(job, loaded[key], subscribers.get(loaded[key].subscriber_id))
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
    if message.channel not in service.channels:
        return "its channel is gone"
    return None


async def _settle_unsent(service: "Service", tx: Tx, delivery: Delivery) -> None:
    message = delivery.message
    now_ms = service.clock.now_ms()
    if message.status == "sending":
        error = "the service stopped while the platform was being called"
        if await store.finish(tx, message, "unknown", now_ms, reason="unknown", error=error):
            await _emit_failure(service, tx, delivery, DeliveryError(Reason.UNKNOWN, error))
    elif message.status == "queued":
        await store.finish(tx, message, "skipped", now_ms, error=_obstacle(service, delivery))


async def _send(service: "Service", delivery: Delivery) -> None:
    channel = service.channels[delivery.message.channel]
    try:
        delivery.message_ref = await channel.send(delivery.chat_id, delivery.message.content)
    except DeliveryError as error:
        delivery.failure = error
    except Exception as error:
        log.exception("channel_broke_contract", channel=channel.name)
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


async def _settle(service: "Service", tx: Tx, delivery: Delivery) -> None:
    message, failure = delivery.message, delivery.failure
    now_ms = service.clock.now_ms()
    if failure is None:
        await store.finish(tx, message, "sent", now_ms, message_ref=delivery.message_ref)
        await service.events.emit(
            tx,
            message.project_id,
            "delivery.success",
            {"message_id": message.message_id, "metadata": message.metadata},
            subscriber=delivery.subscriber,
        )
        return
    await store.finish(
        tx, message, "failed", now_ms, reason=str(failure.reason), error=failure.text
    )
    await _emit_failure(service, tx, delivery, failure)
    if failure.reason.should_unsubscribe and delivery.subscriber is not None:
        await service.subscribers.block(
            tx,
            message.channel,
            delivery.subscriber.user_id,
            reason=str(failure.reason),
        )


async def _emit_failure(
    service: "Service", tx: Tx, delivery: Delivery, failure: DeliveryError
) -> None:
    reason = failure.reason
    # The spec gives `unknown` no flag: it needs a person's look.
    flags = (
        {"retryable": None, "should_unsubscribe": None}
        if reason is Reason.UNKNOWN
        else {"retryable": reason.retryable, "should_unsubscribe": reason.should_unsubscribe}
    )
    await service.events.emit(
        tx,
        delivery.message.project_id,
        "delivery.failed",
        {
            "message_id": delivery.message.message_id,
            "metadata": delivery.message.metadata,
            "reason": str(reason),
            **flags,
            "error": failure.text,
        },
        subscriber=delivery.subscriber,
    )


SPEC = JobSpec(JOB, deliver)
