"""Writes outcomes of messages: rows, events and counts, and unsubscribes recipients who can't be reached
any more."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outbound.gates import OutboundBatch
from msgsvc_core.channels.outbound.send_attempt import SendAttempt
from msgsvc_core.db import Tx
from msgsvc_core.events import Events, NewEvent
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.messages import route_store, store
from msgsvc_core.messages.counting import OutcomeCounter
from msgsvc_core.messages.deliveries import Delivery, is_of_step, obstacle
from msgsvc_core.messages.fields import CopyStatus, MessageStatus
from msgsvc_core.messages.models import FinalStatus, Message, MessageCopy
from msgsvc_core.routing.models import SkippedReason
from msgsvc_core.routing.progress import Obstacle
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.telemetry import Metrics

#: The error of messages whose runner crashed before it wrote their outcome.
DIED = "the service stopped while the platform was being called"

#: The error of messages whose job is a dead letter.
UNDELIVERED = "the service could not deliver it"


class RoutedOutcomes(Protocol):
    """Ends steps of messages with a route: see `route_moves.RouteMoves`."""

    async def settle(self, tx: Tx, deliveries: Sequence[Delivery]) -> list[FinalStatus]: ...

    async def stop(
        self, tx: Tx, message: Message, copy: MessageCopy | None
    ) -> FinalStatus | None: ...

    def copy_of(self, message: Message, status: CopyStatus, **fields: Any) -> MessageCopy: ...

    async def skip(
        self, tx: Tx, skipped: Sequence[tuple[Delivery, Obstacle]]
    ) -> list[FinalStatus]: ...


class MessageOutcomes:
    """Ends messages. The caller must `count` them as the last step of the transaction."""

    def __init__(
        self,
        *,
        clock: Clock,
        events: Events,
        metrics: Metrics,
        subscribers: Subscribers,
        batches: OutcomeCounter,
        routed: RoutedOutcomes,
    ) -> None:
        self._routed = routed
        self._clock = clock
        self._events = events
        self._metrics = metrics
        self._subscribers = subscribers
        self._batches = batches

    async def count(
        self, tx: Tx, ended: Sequence[FinalStatus], corrected: Sequence[FinalStatus] = ()
    ) -> None:
        """Counts them in their batches: see `OutcomeCounter.count`."""
        await self._batches.count(tx, ended, corrected)

    async def settle(self, tx: Tx, deliveries: Sequence[Delivery]) -> list[FinalStatus]:
        """Writes the outcome of messages that were sent, or have failed permanently."""
        now_ms = self._clock.now_ms()
        # Subscribers before their messages, in the lock order of an erasure, and all at once.
        for bot, lost in _lost(deliveries).items():
            await self._subscribers.lock(tx, bot, lost)
        plain, routed = _by_route(deliveries)
        statuses = [final_status(each, each.message) for each in plain]
        finished = await store.finish(tx, statuses, now_ms)
        # A deleted message, whose subscriber was erased meanwhile, is not reported.
        statuses = [each for each in statuses if each.message.message_id in finished]
        calls = [*statuses, *(final_status(each, each.message) for each in routed)]
        tx.on_commit(partial(self._count_settled, calls, now_ms))
        await self._events.emit_many(
            tx, [_event(each) for each in plain if each.message.message_id in finished]
        )
        if routed:
            statuses += await self._routed.settle(tx, routed)
        await self._block_lost(tx, deliveries)
        return statuses

    async def settle_unsent(
        self, tx: Tx, batch: OutboundBatch, deliveries: Sequence[Delivery]
    ) -> list[FinalStatus]:
        """Ends messages that are skipped, and those during whose delivery a runner crashed."""
        if not deliveries:
            return []
        now_ms = self._clock.now_ms()
        return await self.end_unsent(
            tx, [(each, obstacle(batch, each, now_ms)) for each in deliveries]
        )

    async def end_unsent(
        self, tx: Tx, unsent: Sequence[tuple[Delivery, Obstacle | None]]
    ) -> list[FinalStatus]:
        """Ends messages that are skipped, each with the reason, and those during whose delivery a runner
        crashed, without one."""
        plain = [each for each in unsent if each[0].message.route_id is None]
        statuses: list[FinalStatus] = []
        ended: list[tuple[Delivery, NewEvent]] = []
        for delivery, why in plain:
            message, person = delivery.message, delivery.subscriber
            if delivery.in_doubt and message.status in {"sending", "queued"}:
                error = DIED if message.error is None else message.error
                statuses.append(FinalStatus(message, "unknown", reason="unknown", error=error))
                failure = DeliveryError(Reason.UNKNOWN, DIED, in_doubt=True)
                ended.append((delivery, failure_event(message, person, failure, in_doubt=True)))
            elif message.status == "queued" and why is not None:
                status = FinalStatus(message, "skipped", reason=str(why.reason), error=why.text)
                statuses.append(status)
                ended.append((delivery, skipped_event(status, person)))
        finished = await store.finish(tx, statuses, self._clock.now_ms())
        statuses = [each for each in statuses if each.message.message_id in finished]
        tx.on_commit(partial(self.count_outcomes, statuses))
        await self._events.emit_many(
            tx,
            [
                _in_trace(delivery.job, event)
                for delivery, event in ended
                if delivery.message.message_id in finished
            ],
        )
        routed = [each for each in unsent if each[0].message.route_id is not None]
        return [*statuses, *await self._end_routed(tx, routed)]

    async def _end_routed(
        self, tx: Tx, routed: Sequence[tuple[Delivery, Obstacle | None]]
    ) -> list[FinalStatus]:
        """As `end_unsent`, of steps of routes."""
        if not routed:
            return []
        in_doubt = [each for each, _ in routed if each.in_doubt]
        for delivery in in_doubt:
            error = delivery.message.error or DIED
            delivery.failure = DeliveryError(Reason.UNKNOWN, error, in_doubt=True)
        skipped = [
            (each, why)
            for each, why in routed
            if not each.in_doubt and each.message.status == "queued" and why is not None
        ]
        ended = await self._routed.settle(tx, in_doubt)
        ended += await self._routed.skip(tx, skipped)
        tx.on_commit(partial(self.count_outcomes, ended))
        return ended

    async def correct(self, tx: Tx, late: Sequence[Delivery]) -> list[FinalStatus]:
        """Corrects messages that ended as `unknown`. For those that were sent, `delivery.success` is
        emitted; for failed ones `delivery.failed` was emitted before."""
        statuses = [final_status(each, each.message) for each in late]
        corrected = await store.correct(tx, statuses)
        found = [each for each in late if each.message.message_id in corrected]
        await self._events.emit_many(tx, [_event(each) for each in found if each.failure is None])
        await self._block_lost(tx, found)
        return [each for each in statuses if each.message.message_id in corrected]

    async def lock_lost(
        self, tx: Tx, message: Message, failure: DeliveryError
    ) -> Subscriber | None:
        """The recipient of a message, if they are there; locked if the failure is one that unsubscribes."""
        recipient = (message.project_id, message.subscriber_id)
        subscriber = (await self._subscribers.get_many(tx, [recipient])).get(recipient)
        if subscriber is not None and failure.reason.should_unsubscribe:
            await self._subscribers.lock(tx, message.bot, [subscriber.user_id])
        return subscriber

    async def block(
        self, tx: Tx, message: Message, person: Subscriber | None, failure: DeliveryError
    ) -> None:
        """Unsubscribes the recipient whom `lock_lost` found, if they can't be reached any more."""
        if person is not None and failure.reason.should_unsubscribe:
            await self._subscribers.block(
                tx, message.bot, person.user_id, reason=str(failure.reason)
            )

    async def fail_sent(
        self, tx: Tx, message: Message, person: Subscriber | None, failure: DeliveryError
    ) -> list[FinalStatus]:
        """Corrects a message that the platform had accepted, and has failed to deliver; emits
        `delivery.failed`. `person` is whom `lock_lost` found. Returns what the caller must have counted:
        nothing if it is known."""
        status = FinalStatus(message, "failed", reason=str(failure.reason), error=failure.text)
        if not await store.fail_sent(tx, status):
            return []
        await self._events.emit_many(tx, [failure_event(message, person, failure, in_doubt=False)])
        await self.block(tx, message, person, failure)
        return [status]

    async def settle_dead(self, tx: Tx, job: Job, error: str) -> None:
        """Ends a message whose job is a dead letter, so that nothing waits for it for ever.

        A message whose call was in progress is `unknown`, as after a crash; any other was not sent.
        """
        message = await store.find(tx, job.project_id or "", job.payload["message_id"])
        if message is not None and message.route_id is not None and is_of_step(job, message):
            delivery = Delivery(job, message, None)
            delivery.failure = DeliveryError(
                Reason.UNKNOWN, UNDELIVERED, in_doubt=message.status == "sending"
            )
            await self._count_routed(tx, await self._routed.settle(tx, [delivery]))
        elif message is not None and is_of_step(job, message):
            # The reason is not given to the project: it may name hosts and files of the operator.
            await self._end(
                tx,
                message,
                UNDELIVERED,
                is_unknown=message.status == "sending",
                in_doubt=Delivery(job, message, None).in_doubt,
            )

    async def settle_withdrawn(self, tx: Tx, job: Job) -> None:
        """Ends a message as `unknown` that the original of a restored copy may have sent."""
        message = await store.find(tx, job.project_id or "", job.payload["message_id"])
        if message is not None and is_of_step(job, message):
            why = (
                "the service was restored from a backup; it may have been sent after that was made"
            )
            if message.route_id is not None:
                copy = self._routed.copy_of(
                    message, "unknown", reason=str(Reason.UNKNOWN), error=why
                )
                end = await self._routed.stop(tx, message, copy)
                await self._count_routed(tx, [] if end is None else [end])
                return
            await self._end(tx, message, why, is_unknown=True, in_doubt=True)

    async def _count_routed(self, tx: Tx, ended: Sequence[FinalStatus]) -> None:
        tx.on_commit(partial(self.count_outcomes, ended))
        await self._batches.count(tx, ended)

    async def _end(
        self, tx: Tx, message: Message, why: str, *, is_unknown: bool, in_doubt: bool
    ) -> None:
        failure = DeliveryError(Reason.UNKNOWN, why)
        status: MessageStatus = "unknown" if is_unknown else "failed"
        statuses = [FinalStatus(message, status, reason="unknown", error=failure.text)]
        if await store.finish(tx, statuses, self._clock.now_ms()):
            recipient = (message.project_id, message.subscriber_id)
            found = await self._subscribers.get_many(tx, [recipient])
            await self._events.emit_many(
                tx, [failure_event(message, found.get(recipient), failure, in_doubt=in_doubt)]
            )
            tx.on_commit(partial(self.count_outcomes, statuses))
            await self._batches.count(tx, statuses)

    async def insert_ended(
        self,
        tx: Tx,
        statuses: Sequence[FinalStatus],
        past: Mapping[str, Sequence[MessageCopy]] | None = None,
    ) -> None:
        """Adds messages of mailings, which have their outcome already, and counts them in the metrics. `past`
        are the earlier steps of a route, by subscriber."""
        now_ms = self._clock.now_ms()
        await store.add_ended(tx, statuses, now_ms)
        await route_store.add_ended(tx, statuses, past or {}, now_ms)
        tx.on_commit(partial(self.count_outcomes, statuses))

    async def correct_statuses(self, tx: Tx, statuses: Sequence[FinalStatus]) -> None:
        """Sets the real status of messages that ended as `unknown`."""
        await store.correct(tx, statuses)

    def count_outcomes(self, statuses: Sequence[FinalStatus]) -> None:
        """Counts them in the metrics."""
        counts = Counter((each.message.bot, each.status, each.reason or "") for each in statuses)
        for (channel, status, reason), count in counts.items():
            self._metrics.count_deliveries(count, channel, status, reason)

    def _count_settled(self, statuses: Sequence[FinalStatus], now_ms: int) -> None:
        self.count_outcomes(statuses)
        for each in statuses:
            if each.status == "sent":
                waited_s = max(0, now_ms - each.message.created_at_ms) / 1000
                self._metrics.channels.delivered(each.message.bot, waited_s)

    async def _block_lost(self, tx: Tx, deliveries: Sequence[Delivery]) -> None:
        for bot, lost in _lost(deliveries).items():
            for user_id, reason in lost.items():
                await self._subscribers.block(tx, bot, user_id, reason=str(reason))


def _by_route(deliveries: Sequence[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
    """The deliveries of messages without a route, and of those with one."""
    routed = [each for each in deliveries if each.message.route_id is not None]
    return [each for each in deliveries if each.message.route_id is None], routed


def _lost(deliveries: Sequence[Delivery]) -> dict[str, dict[str, Reason]]:
    """By bot and user, why those must be unsubscribed who can't be reached any more."""
    lost: dict[str, dict[str, Reason]] = defaultdict(dict)
    for delivery in deliveries:
        failure, subscriber = delivery.failure, delivery.subscriber
        if failure is not None and failure.reason.should_unsubscribe and subscriber is not None:
            lost[delivery.message.bot][subscriber.user_id] = failure.reason
    return lost


def final_status(attempt: SendAttempt, message: Message) -> FinalStatus:
    """The status of a message after its last attempt."""
    failure = attempt.failure
    if failure is None:
        return FinalStatus(message, "sent", ref=attempt.message_ref)
    if attempt.in_doubt:
        return FinalStatus(message, "unknown", reason="unknown", error=failure.text)
    return FinalStatus(message, "failed", reason=str(failure.reason), error=failure.text)


def _event(delivery: Delivery) -> NewEvent:
    return outcome_event(delivery, delivery.message, delivery.subscriber)


def outcome_event(
    attempt: SendAttempt, message: Message, subscriber: Subscriber | None
) -> NewEvent:
    """The event of a message after its last attempt."""
    failure = attempt.failure
    if failure is None:
        event = success_event(message, subscriber)
    else:
        event = failure_event(message, subscriber, failure, in_doubt=attempt.in_doubt)
    return _in_trace(attempt.job, event)


def _in_trace(job: Job, event: NewEvent) -> NewEvent:
    """The event as one of the job's trace: outcomes of several jobs are written together."""
    return event if job.span is None else replace(event, traceparent=job.span.traceparent)


def success_event(message: Message, subscriber: Subscriber | None) -> NewEvent:
    """`delivery.success` of a message."""
    return NewEvent(
        message.project_id,
        "delivery.success",
        {
            "message_id": message.message_id,
            "batch_id": message.batch_id,
            "job_id": message.job_id,
            "metadata": message.metadata,
        },
        subscriber,
    )


def report_event(
    message: Message, subscriber: Subscriber | None, name: str, fields: Mapping[str, str]
) -> NewEvent:
    """`delivery.delivered` or `delivery.read` of a message."""
    success = success_event(message, subscriber)
    return replace(success, name=name, fields={**success.fields, **fields})


def failure_event(
    message: Message, subscriber: Subscriber | None, failure: DeliveryError, *, in_doubt: bool
) -> NewEvent:
    """`delivery.failed` of a message."""
    reason = Reason.UNKNOWN if in_doubt else failure.reason
    # The spec has no flag for `unknown`: a person must decide.
    flags = (
        {"retryable": None, "should_unsubscribe": None}
        if reason is Reason.UNKNOWN
        else {"retryable": reason.retryable, "should_unsubscribe": reason.should_unsubscribe}
    )
    return NewEvent(
        message.project_id,
        "delivery.failed",
        {
            "message_id": message.message_id,
            "batch_id": message.batch_id,
            "job_id": message.job_id,
            "metadata": message.metadata,
            "status": "unknown" if in_doubt else "failed",
            "reason": str(reason),
            **flags,
            "error": failure.text,
        },
        subscriber,
    )


def skipped_event(end: FinalStatus, subscriber: Subscriber | None) -> NewEvent:
    """`delivery.failed` of a message that was skipped."""
    message = end.message
    return NewEvent(
        message.project_id,
        "delivery.failed",
        {
            "message_id": message.message_id,
            "batch_id": message.batch_id,
            "job_id": message.job_id,
            "metadata": message.metadata,
            "status": "skipped",
            "reason": end.reason or str(SkippedReason.NO_SUBSCRIBER),
            "retryable": False,
            "should_unsubscribe": False,
            "error": end.error or "",
        },
        subscriber,
    )


async def refuse_ended(tx: Tx, job: Job) -> None:
    """Refuses to retry a message that has ended: its outcome was reported and counted, and if the project
    has sent another message instead, the recipient would get both, maybe days late."""
    message = await store.find(tx, job.project_id or "", job.payload["message_id"])
    if message is None:
        raise Conflict("its message no longer exists; discard this job")
    if message.status not in {"queued", "sending"}:
        raise Conflict(
            "its message is final and its project was notified; to reach the person, the project sends"
            " a new message; discard this job"
        )
