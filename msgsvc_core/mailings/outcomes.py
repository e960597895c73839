"""Records recipients' outcomes: the ledger, the counts, their messages and events, in one transaction."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

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
from msgsvc_core.messages.models import FinalStatus, Message
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
    """Final outcomes that are in the ledger, and whether other deliveries are retried."""

    ended: Sequence[tuple[RecipientDelivery, FinalStatus]]
    has_retries: bool


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
    ) -> None:
        self._clock = clock
        self._events = events
        self._subscribers = subscribers
        self._retries = retries
        self._default_lang = default_lang
        self._messages = messages

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
        outcomes: list[RecipientOutcome] = []
        for delivery in deliveries:
            outcome = delivery.outcome(
                context.gate, self._retries, now_ms, repeatable=context.repeatable
            )
            if outcome.is_final:
                status = final_status(delivery, self._message(context, delivery))
                final[delivery.subscriber_id] = delivery, status
                outcomes.append(_ended(delivery, status))
            else:
                outcomes.append(_waiting(delivery, outcome, now_ms))
        # Subscribers before their rows, in the lock order of an erasure, to avoid deadlocks.
        lost = [each.subscriber.user_id for each in _lost(deliveries)]
        await self._subscribers.lock(tx, deliveries[0].subscriber.bot, lost)
        # Subscribers erased meanwhile are not in the ledger, and nothing of them is stored.
        recorded = await ledger.record_outcomes(tx, context.mailing, outcomes)
        return RecordedOutcomes(
            [end for subscriber_id, end in final.items() if subscriber_id in recorded],
            has_retries=len(final) < len(deliveries),
        )

    async def publish(self, context: SendContext, tx: Tx, recorded: RecordedOutcomes) -> None:
        """Adds final outcomes to the counts, adds their messages, and emits an event for each."""
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
        await self._messages.insert_ended(tx, statuses)
        await self._events.emit_many(
            tx,
            [outcome_event(each, status.message, each.subscriber) for each, status in ended],
        )
        for delivery in _lost([delivery for delivery, _ in ended]):
            assert delivery.failure is not None, "that is how they were lost"
            subscriber, reason = delivery.subscriber, str(delivery.failure.reason)
            await self._subscribers.block(tx, subscriber.bot, subscriber.user_id, reason=reason)

    async def skip(self, context: SendContext, tx: Tx, skipped: Sequence[tuple[str, str]]) -> None:
        """Records skipped recipients, each with the reason."""
        if skipped:
            outcomes = [RecipientOutcome(each, "skipped", error=error) for each, error in skipped]
            recorded = await ledger.record_outcomes(tx, context.mailing, outcomes)
            await store.count(tx, context.mailing, skipped=len(recorded))

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
    )
