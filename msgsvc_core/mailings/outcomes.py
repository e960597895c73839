"""Records recipients' outcomes: the ledger, the counts, their messages and events, in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.send_attempt import Outcome, RetryPolicy
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
    StepOutcome,
    goes_on,
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
        now_ms = self._clock.now_ms()
        final: dict[str, tuple[RecipientDelivery, FinalStatus]] = {}
        waiting: list[RecipientOutcome] = []
        #: Whose next attempt would come too late for their step, by id.
        late: dict[str, tuple[RecipientDelivery, StepOutcome]] = {}
        for delivery in deliveries:
            outcome = delivery.outcome(
                context.gate, self._retries, now_ms, repeatable=context.repeatable
            )
            subscriber_id = delivery.subscriber_id
            if outcome.is_final:
                message = self._message(context, delivery)
                final[subscriber_id] = delivery, final_status(delivery, message)
                continue
            again = _waiting(delivery, outcome, now_ms)
            if (end := past_patience(context.mailing, delivery, outcome, now_ms)) is not None:
                late[subscriber_id] = delivery, end
            waiting.append(again)
        # Subscribers before their rows, in the lock order of an erasure, to avoid deadlocks.
        lost = [each.subscriber.user_id for each in _lost(deliveries)]
        await self._subscribers.lock(tx, deliveries[0].subscriber.bot, lost)
        moved: list[RecipientDelivery] = []
        past: Mapping[str, Sequence[MessageCopy]] = {}
        doubted: dict[str, StepOutcome] = {}
        if context.mailing.route_id is not None and (final or late):
            moved, doubted = await self._go_on(context, tx, final, late)
            past = await self._find_past(tx, context.mailing, final)
            # Whoever is late and has no other channel waits, as without a route.
            gone = {each.subscriber_id for each in moved}
            waiting = [each for each in waiting if each.subscriber_id not in gone]
        outcomes = [*waiting, *(_ended(*end) for end in final.values())]
        # Subscribers erased meanwhile are not in the ledger, and nothing of them is stored.
        recorded = await ledger.record_outcomes(tx, context.mailing, outcomes)
        await self._stand_in(tx, context.mailing, doubted, outcomes, recorded)
        return RecordedOutcomes(
            [end for subscriber_id, end in final.items() if subscriber_id in recorded],
            has_retries=bool(waiting),
            moved=moved,
            past=past,
        )

    async def _go_on(
        self,
        context: SendContext,
        tx: Tx,
        final: dict[str, tuple[RecipientDelivery, FinalStatus]],
        late: Mapping[str, tuple[RecipientDelivery, StepOutcome]],
    ) -> tuple[list[RecipientDelivery], dict[str, StepOutcome]]:
        """Takes those whom their channel did not reach along the route, out of `final`; the others keep the
        outcome of all channels together. Of `late` it takes those who have another channel. Returns whom it
        took; and those of the others whom an earlier channel may have reached, by id, with how the last one
        ended."""
        mailing = context.mailing
        left = [
            StepOutcome(
                subscriber_id,
                delivery.subscriber.channel,
                "unknown" if end.status == "unknown" else "failed",
                end.reason,
                end.error,
                tries=1,
                variant=delivery.variant,
            )
            for subscriber_id, (delivery, end) in final.items()
            if goes_on(mailing, delivery.subscriber.channel, end.status)
        ]
        ended = await self._routes.go_on(
            tx, mailing, [*left, *(outcome for _, outcome in late.values())]
        )
        moved = [delivery for delivery, each in late.values() if each.subscriber_id not in ended]
        doubted: dict[str, StepOutcome] = {}
        for each in left:
            delivery, end = final[each.subscriber_id]
            whole = ended.get(each.subscriber_id)
            if whole is None:
                del final[each.subscriber_id]
                moved.append(delivery)
            else:
                assert whole.status in {"failed", "unknown"}, "it was called"
                status: MessageStatus = "unknown" if whole.status == "unknown" else "failed"
                final[each.subscriber_id] = (
                    delivery,
                    replace(end, status=status, reason=whole.reason, error=whole.error),
                )
                if whole.doubted is not None:
                    doubted[each.subscriber_id] = replace(each, doubted=whole.doubted)
        return moved, doubted

    async def _find_past(
        self,
        tx: Tx,
        mailing: Mailing,
        final: Mapping[str, tuple[RecipientDelivery, FinalStatus]],
    ) -> Mapping[str, Sequence[MessageCopy]]:
        """The steps before those of the recipients who have reached the end of their route."""
        later = [
            subscriber_id
            for subscriber_id, (delivery, _) in final.items()
            if mailing.step_of(delivery.subscriber.channel)
        ]
        return await self._routes.find_past(tx, mailing, later) if later else {}

    async def _stand_in(
        self,
        tx: Tx,
        mailing: Mailing,
        doubted: Mapping[str, StepOutcome],
        outcomes: Sequence[RecipientOutcome],
        recorded: set[str],
    ) -> None:
        """Has the rows of earlier steps stand for people whom these may have reached."""
        ends = [
            (doubted[each.subscriber_id], each)
            for each in outcomes
            if each.subscriber_id in doubted and each.subscriber_id in recorded
        ]
        if ends:
            await self._routes.stand_in(tx, mailing, ends)

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
        doubted: dict[str, StepOutcome] = {}
        if mailing.route_id is None:
            outcomes = [RecipientOutcome(each, "skipped", error=error) for each, error in skipped]
        else:
            outcomes, doubted = await self._skip_step(tx, mailing, skipped, channel)
        recorded = await ledger.record_outcomes(tx, mailing, outcomes)
        await self._stand_in(tx, mailing, doubted, outcomes, recorded)
        failed = sum(
            each.subscriber_id in recorded for each in outcomes if each.status != "skipped"
        )
        unknown = sum(
            each.subscriber_id in recorded for each in outcomes if each.status == "unknown"
        )
        await store.count(
            tx, mailing, skipped=len(recorded) - failed, failed=failed, unknown=unknown
        )

    async def _skip_step(
        self, tx: Tx, mailing: Mailing, skipped: Sequence[tuple[str, str]], channel: str
    ) -> tuple[list[RecipientOutcome], dict[str, StepOutcome]]:
        """Takes recipients along the route from a channel that can't be used; returns what became of those
        for whom none is left, and whom an earlier one may have reached, as `_go_on`. They have no message:
        their last step was no call."""
        ids = [subscriber_id for subscriber_id, _ in skipped]
        variants: Mapping[str, int] = {}
        if mailing.experiment is not None:
            variants = await ledger.find_variants(tx, mailing.project_id, mailing.job_id, ids)
        left = [
            StepOutcome(each, channel, "skipped", error=error, variant=variants.get(each))
            for each, error in skipped
        ]
        ended = await self._routes.go_on(tx, mailing, left)
        outcomes = [
            RecipientOutcome(each.subscriber_id, each.status, reason=each.reason, error=each.error)
            for each in ended.values()
        ]
        doubted = {
            each.subscriber_id: replace(each, doubted=ended[each.subscriber_id].doubted)
            for each in left
            if each.subscriber_id in ended and ended[each.subscriber_id].doubted is not None
        }
        return outcomes, doubted

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
            with suppress(ValidationFailed, WrongVariable):
                delivery.content = context.content_of(delivery).message_for(
                    delivery.subscriber,
                    self._default_lang,
                    most=2**31,
                    links=self._subscribers.preferences,
                )
        await self.settle(context, tx, deliveries)

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
        tries=1,
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
