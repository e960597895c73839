"""Records recipients' outcomes: the ledger, the counts, their messages and events, in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from msgsvc_core.channels.failures import DeliveryError, Reason, WaitedTooLong
from msgsvc_core.channels.outbound.send_attempt import Outcome, RetryPolicy
from msgsvc_core.content.substitution import WrongVariable
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import ledger, store
from msgsvc_core.mailings.deliveries import RecipientDelivery, SendContext
from msgsvc_core.mailings.ledger import RecipientOutcome
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.mailings.route_moves import (
    MailingRoutes,
    RouteEnd,
    StepOutcome,
    ended_step,
    past_patience,
)
from msgsvc_core.messages.fields import MessageStatus
from msgsvc_core.messages.models import FinalStatus, Message, MessageCopy
from msgsvc_core.messages.outcomes import (
    DIED,
    MessageOutcomes,
    final_status,
    outcome_event,
    success_event,
)
from msgsvc_core.subscribers.service import Subscribers

#: The reason of recipients who wait for a retry, and may have got the message already.
DOUBT = str(Reason.UNKNOWN)


@value_object
class RecordedOutcomes:
    """Final outcomes that are in the ledger, whether other deliveries are retried, and those whose recipients
    go on to the next channel of a route."""

    ended: Sequence[tuple[RecipientDelivery, FinalStatus]]
    has_retries: bool
    moved: Sequence[RecipientDelivery] = ()
    #: The steps before the last one of a route, by recipient.
    past: Mapping[str, Sequence[MessageCopy]] = field(default_factory=dict)


@dataclass(slots=True)
class Settling:
    """A recipient whose call is over, on the way into the ledger."""

    delivery: RecipientDelivery
    #: How they are tried again; None if they have an outcome.
    again: RecipientOutcome | None
    #: Their outcome; None if they are tried again.
    end: FinalStatus | None
    #: What became of their step, if another channel may follow.
    step: StepOutcome | None
    #: Whether they go on to another channel.
    has_moved: bool = False
    #: How all channels of the route ended, if they would have gone on.
    route_end: RouteEnd | None = None

    @property
    def subscriber_id(self) -> str:
        return self.delivery.subscriber_id

    @property
    def row(self) -> RecipientOutcome:
        """What the ledger says of them."""
        if self.again is not None:
            return self.again
        assert self.end is not None, "they are not tried again"
        return _ended(self.delivery, self.end)

    def follow(self, route_end: RouteEnd | None) -> None:
        """They go on along the route, or it ended so. Whoever is late and has no other channel is tried
        again, as without a route."""
        if route_end is None:
            self.has_moved = True
        elif self.end is not None:
            assert route_end.status in {"failed", "unknown"}, "it was called"
            status: MessageStatus = "unknown" if route_end.status == "unknown" else "failed"
            reason, error = route_end.reason, route_end.error
            self.end = replace(self.end, status=status, reason=reason, error=error)
            self.route_end = route_end


class MailingOutcomes:
    """Records recipients' outcomes and their messages."""

    def __init__(
        self,
        *,
        clock: Clock,
        events: Events,
        subscribers: Subscribers,
        retries: RetryPolicy,
        default_lang: str,
        messages: MessageOutcomes,
        routes: MailingRoutes,
    ) -> None:
        self._clock = clock
        self._events = events
        self._subscribers = subscribers
        self._retries = retries
        self._default_lang = default_lang
        self._messages = messages
        self._routes = routes

    async def settle(
        self, context: SendContext, tx: Tx, deliveries: Sequence[RecipientDelivery]
    ) -> None:
        """Records deliveries that were sent, have failed or are retried, and publishes the outcomes."""
        await self.publish(context, tx, await self.record(context, tx, deliveries))

    async def record(
        self, context: SendContext, tx: Tx, deliveries: Sequence[RecipientDelivery]
    ) -> RecordedOutcomes:
        """Records deliveries that were sent, have failed or are retried. The caller must `publish` what is
        returned in the same transaction."""
        if not deliveries:
            return RecordedOutcomes((), has_retries=False)
        mailing, now_ms = context.mailing, self._clock.now_ms()
        settling = [self._settle(context, each, now_ms) for each in deliveries]
        # Subscribers before their rows, in the lock order of an erasure, to avoid deadlocks.
        lost = [each.subscriber.user_id for each in _lost(deliveries)]
        await self._subscribers.lock(tx, deliveries[0].subscriber.bot, lost)
        past: Mapping[str, Sequence[MessageCopy]] = {}
        if mailing.route_id is not None:
            await self._go_on(tx, mailing, settling)
            past = await self._find_past(tx, mailing, settling)
        stayed = [each for each in settling if not each.has_moved]
        recorded = await self._write(
            tx,
            mailing,
            [each.row for each in stayed],
            {each.subscriber_id: each.route_end for each in stayed if each.route_end is not None},
        )
        return RecordedOutcomes(
            [
                (each.delivery, each.end)
                for each in stayed
                if each.end is not None and each.subscriber_id in recorded
            ],
            has_retries=any(each.end is None for each in stayed),
            moved=[each.delivery for each in settling if each.has_moved],
            past=past,
        )

    def _settle(self, context: SendContext, delivery: RecipientDelivery, now_ms: int) -> Settling:
        """What became of a recipient by their call alone."""
        outcome = delivery.outcome(
            context.gate, self._retries, now_ms, repeatable=context.repeatable
        )
        if not outcome.is_final:
            late = past_patience(context.mailing, delivery, outcome, now_ms)
            return Settling(delivery, _waiting(delivery, outcome, now_ms), None, late)
        end = final_status(delivery, self._message(context, delivery))
        return Settling(delivery, None, end, ended_step(context.mailing, delivery, end))

    async def _go_on(self, tx: Tx, mailing: Mailing, settling: Sequence[Settling]) -> None:
        """Takes those along the route whom their channel did not reach, or not in the time of its step."""
        left = {each.subscriber_id: each.step for each in settling if each.step is not None}
        if not left:
            return
        ends = await self._routes.go_on(tx, mailing, list(left.values()))
        for each in settling:
            if each.step is not None:
                each.follow(ends.get(each.subscriber_id))

    async def _find_past(
        self, tx: Tx, mailing: Mailing, settling: Sequence[Settling]
    ) -> Mapping[str, Sequence[MessageCopy]]:
        """The steps before those of the recipients who have reached the end of their route."""
        later = [
            each.subscriber_id
            for each in settling
            if each.end is not None
            and not each.has_moved
            and mailing.step_of(each.delivery.subscriber.channel)
        ]
        return await self._routes.find_past(tx, mailing, later) if later else {}

    async def _write(
        self,
        tx: Tx,
        mailing: Mailing,
        rows: Sequence[RecipientOutcome],
        route_ends: Mapping[str, RouteEnd],
    ) -> set[str]:
        """Writes outcomes into the ledger; returns whose. Subscribers erased meanwhile are not in it, and
        nothing of them is stored. The rows of earlier steps stand for people whom these may have reached."""
        recorded = await ledger.record_outcomes(tx, mailing, rows)
        doubted = [
            (route_ends[each.subscriber_id], each)
            for each in rows
            if each.subscriber_id in recorded
            and each.subscriber_id in route_ends
            and route_ends[each.subscriber_id].doubted is not None
        ]
        if doubted:
            await self._routes.stand_in(tx, mailing, doubted)
        return recorded

    async def publish(self, context: SendContext, tx: Tx, recorded: RecordedOutcomes) -> None:
        """Adds final outcomes to the counts, adds their messages, and emits an event for each."""
        await self._block(tx, recorded.moved)
        ended = recorded.ended
        if not ended:
            return
        statuses = [status for _, status in ended]
        counts = Counter(status.status for status in statuses)
        await store.count(
            tx,
            context.mailing,
            sent=counts["sent"],
            failed=counts["failed"] + counts["unknown"],
            unknown=counts["unknown"],
        )
        await self._messages.insert_ended(tx, statuses, recorded.past)
        await self._events.emit_many(
            tx,
            [outcome_event(each, status.message, each.subscriber) for each, status in ended],
        )
        await self._block(tx, [delivery for delivery, _ in ended])

    async def _block(self, tx: Tx, deliveries: Sequence[RecipientDelivery]) -> None:
        """Unsubscribes those who can't be reached any more."""
        for delivery in _lost(deliveries):
            assert delivery.failure is not None, "that is how they were lost"
            subscriber, reason = delivery.subscriber, str(delivery.failure.reason)
            await self._subscribers.block(tx, subscriber.bot, subscriber.user_id, reason=reason)

    async def skip(
        self, context: SendContext, tx: Tx, skipped: Sequence[tuple[str, str]], channel: str = ""
    ) -> None:
        """Records skipped recipients, each with the reason. With a route they go on from this `channel`."""
        if not skipped:
            return
        mailing = context.mailing
        ends: Mapping[str, RouteEnd] = {}
        if mailing.route_id is None:
            rows = [RecipientOutcome(each, "skipped", error=error) for each, error in skipped]
        else:
            passed = [(each, channel, error) for each, error in skipped]
            ends = await self._routes.pass_over(tx, mailing, passed)
            # Without a message: their last step was no call.
            rows = [
                RecipientOutcome(each, end.status, reason=end.reason, error=end.error)
                for each, end in ends.items()
            ]
        recorded = await self._write(tx, mailing, rows, ends)
        counts = Counter(each.status for each in rows if each.subscriber_id in recorded)
        await store.count(
            tx,
            mailing,
            skipped=counts["skipped"],
            failed=counts["failed"] + counts["unknown"],
            unknown=counts["unknown"],
        )

    async def retry_in_doubt(
        self, context: SendContext, tx: Tx, deliveries: Sequence[RecipientDelivery]
    ) -> None:
        """Sends again to those in flight when a process died: the platform drops duplicates."""
        now_ms = self._clock.now_ms()
        await ledger.record_outcomes(
            tx,
            context.mailing,
            [
                RecipientOutcome(
                    each.subscriber_id, "queued", reason=DOUBT, error=DIED, run_at_ms=now_ms
                )
                for each in deliveries
            ],
        )

    async def give_up(
        self, context: SendContext, tx: Tx, deliveries: Sequence[RecipientDelivery]
    ) -> None:
        """Records those in flight when a process died as `unknown`."""
        for delivery in deliveries:
            delivery.failure = DeliveryError(Reason.UNKNOWN, DIED, in_doubt=True)
            self._render(context, delivery)
        await self.settle(context, tx, deliveries)

    async def fail(
        self, context: SendContext, tx: Tx, deliveries: Sequence[RecipientDelivery]
    ) -> None:
        """Records recipients who were not called, each with the failure that is set."""
        for delivery in deliveries:
            self._render(context, delivery)
        await self.settle(context, tx, deliveries)

    def _render(self, context: SendContext, delivery: RecipientDelivery) -> None:
        """The content that a recipient would have got, for their message."""
        with suppress(ValidationFailed, WrongVariable):
            delivery.content = context.content_of(delivery).message_for(
                delivery.subscriber,
                self._default_lang,
                most=2**31,
                links=self._subscribers.preferences,
            )

    async def settle_left(self, context: SendContext, tx: Tx, job: Job) -> None:
        """Settles the recipients in flight when a process died: as `unknown`, or by sending again on a
        platform that drops duplicates."""
        mailing = context.mailing
        shard = await store.find_shard(tx, *mailing.key, context.gate.key)
        if shard is None or not shard.in_flight:
            return
        found = await self._subscribers.get_many(
            tx, [(mailing.project_id, subscriber_id) for subscriber_id in shard.in_flight]
        )
        variants: dict[str, int] = {}
        if mailing.experiment is not None:
            variants = await ledger.find_variants(tx, *mailing.key, shard.in_flight)
        deliveries = [
            RecipientDelivery(job, each, variant=variants.get(each.subscriber_id))
            for each in found.values()
        ]
        if context.repeatable and mailing.status == "running":
            await self.retry_in_doubt(context, tx, deliveries)
        else:
            await self.give_up(context, tx, deliveries)
        await store.set_shard(tx, *mailing.key, replace(shard, in_flight=[]))

    async def settle_late(
        self, context: SendContext, tx: Tx, deliveries: Sequence[RecipientDelivery]
    ) -> int:
        """Records the results of a runner that was suspended and has lost the shard. The new runner found
        these recipients in flight, and records them as `unknown`. Returns how many had an outcome."""
        sent = [
            each for each in deliveries if each.failure is None and each.message_ref is not None
        ]
        await self.settle(context, tx, sent)
        known = await ledger.correct(tx, context.mailing, [each.subscriber_id for each in sent])
        late = [
            (each, replace(self._message(context, each), message_id=known[each.subscriber_id]))
            for each in sent
            if each.subscriber_id in known
        ]
        await self._messages.correct_statuses(
            tx, [final_status(each, message) for each, message in late]
        )
        await store.count(
            tx, context.mailing, sent=len(late), failed=-len(late), unknown=-len(late)
        )
        await self._events.emit_many(
            tx, [success_event(message, each.subscriber) for each, message in late]
        )
        return len(late)

    async def count_failed(self, tx: Tx, failed: Sequence[FinalStatus]) -> None:
        """Corrects recipients whose message was sent, and of whom the platform reports a failure later."""
        for end in failed:
            if end.message.job_id is not None and await ledger.fail_sent(tx, end):
                await store.count_failed(tx, end.message.project_id, end.message.job_id)

    def _message(self, context: SendContext, delivery: RecipientDelivery) -> Message:
        mailing, subscriber = context.mailing, delivery.subscriber
        return Message(
            project_id=mailing.project_id,
            message_id=new_id("msg"),
            subscriber_id=subscriber.subscriber_id,
            channel=subscriber.channel,
            bot=subscriber.bot,
            status="queued",
            content=delivery.content or context.content_of(delivery).unfilled,
            metadata=mailing.metadata,
            reason=DOUBT if delivery.was_in_doubt else None,
            error=None,
            attempts=delivery.attempts,
            message_ref=None,
            created_at_ms=self._clock.now_ms(),
            expires_at_ms=mailing.expires_at_ms,
            finished_at_ms=None,
            permission=mailing.permission,
            job_id=mailing.job_id,
            trace_id=delivery.trace_id,
            route_id=mailing.route_id,
            route_steps=mailing.route_steps,
            route_step=mailing.step_of(subscriber.channel),
        )


def _lost(deliveries: Sequence[RecipientDelivery]) -> list[RecipientDelivery]:
    """Deliveries to recipients who must be unsubscribed."""
    return [each for each in deliveries if each.failure and each.failure.reason.should_unsubscribe]


def _ended(delivery: RecipientDelivery, status: FinalStatus) -> RecipientOutcome:
    assert status.status != "sending", "what is being sent has no outcome"
    return RecipientOutcome(
        delivery.subscriber_id,
        status.status,
        tries=0 if isinstance(delivery.failure, WaitedTooLong) else 1,
        message_id=status.message.message_id,
        reason=status.reason,
        error=status.error,
    )


def _waiting(delivery: RecipientDelivery, outcome: Outcome, now_ms: int) -> RecipientOutcome:
    """A recipient who is retried. The limit of a platform's requests to wait counts from its first one,
    since a mailing may take longer because of its pace or a pause."""
    refused_from_ms = delivery.rate_limited_since_ms
    error = None
    if outcome.status == "retry":
        assert delivery.failure is not None, "that is why they are tried again"
        error = delivery.failure.text
        refused_from_ms = (refused_from_ms or now_ms) if outcome.rate_limited else None
    return RecipientOutcome(
        delivery.subscriber_id,
        "queued",
        tries=int(outcome.counts),
        reason=DOUBT if delivery.in_doubt else None,
        error=error,
        run_at_ms=now_ms if outcome.retry_at_ms is None else outcome.retry_at_ms,
        refused_from_ms=refused_from_ms,
        began_ms=delivery.began_ms,
    )
