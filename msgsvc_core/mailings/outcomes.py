"""Writes down what became of recipients: the ledger, the counts, their messages and events, at once."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.content.substitution import WrongVariable
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.mailings import ledger, store
from msgsvc_core.mailings.deliveries import RecipientDelivery, SendContext
from msgsvc_core.mailings.ledger import Outcome
from msgsvc_core.messages.deliveries import Delivery
from msgsvc_core.messages.delivery import BACKOFF
from msgsvc_core.messages.models import FinalStatus, Message
from msgsvc_core.messages.outcomes import DIED, failure_event, success_event
from msgsvc_core.messages.store import add_ended, correct
from msgsvc_core.subscribers.service import Subscribers

#: The reason of recipients who wait to be sent to again, and may have got it already.
DOUBT = str(Reason.UNKNOWN)


class MailingOutcomes:
    """What of a mailing is written down. `count` is told of its messages after the commit."""

    def __init__(
        self,
        *,
        clock: Clock,
        events: Events,
        subscribers: Subscribers,
        limits: LimitSettings,
        default_lang: str,
        count: Callable[[Sequence[FinalStatus]], None],
    ) -> None:
        self._clock = clock
        self._events = events
        self._subscribers = subscribers
        self._limits = limits
        self._default_lang = default_lang
        self._count = count

    async def settle(self, post: SendContext, tx: Tx, letters: Sequence[RecipientDelivery]) -> bool:
        """Writes down letters that were sent, failed, or go back to wait; returns whether any does."""
        if not letters:
            return False
        ends: dict[str, tuple[RecipientDelivery, FinalStatus]] = {}
        outcomes: list[Outcome] = []
        for letter in letters:
            again = self._again(post, letter)
            if again is None:
                ending = self._ending(post, letter)
                ends[letter.subscriber_id] = letter, ending
                again = _outcome(letter, ending)
            outcomes.append(again)
        # People before their rows, as an erasure has them: two that go the other way would deadlock.
        lost = [each.subscriber.user_id for each in _lost(letters)]
        await self._subscribers.lock(tx, letters[0].subscriber.bot, lost)
        # Who was erased meanwhile is not in the ledger, and nothing is kept of them.
        noted = await ledger.note(tx, post.mailing, outcomes)
        ended = [end for subscriber_id, end in ends.items() if subscriber_id in noted]
        counts = Counter(ending.status for _, ending in ended)
        await store.count(
            tx,
            post.mailing,
            sent=counts["sent"],
            failed=counts["failed"] + counts["unknown"],
            unknown=counts["unknown"],
        )
        await self._tell(post, tx, ended)
        return len(ends) < len(letters)

    async def skip(self, post: SendContext, tx: Tx, skipped: Sequence[tuple[str, str]]) -> None:
        """Writes down recipients who don't get it, each with the reason why."""
        if skipped:
            outcomes = [Outcome(each, "skipped", error=error) for each, error in skipped]
            noted = await ledger.note(tx, post.mailing, outcomes)
            await store.count(tx, post.mailing, skipped=len(noted))

    async def repeat(self, post: SendContext, tx: Tx, letters: Sequence[RecipientDelivery]) -> None:
        """Has those sent to again who were in hand when a process died: the platform drops what they got."""
        now_ms = self._clock.now_ms()
        await ledger.note(
            tx,
            post.mailing,
            [
                Outcome(each.subscriber_id, "queued", reason=DOUBT, error=DIED, run_at_ms=now_ms)
                for each in letters
            ],
        )

    async def give_up(
        self, post: SendContext, tx: Tx, letters: Sequence[RecipientDelivery]
    ) -> None:
        """Writes down those who were in hand when a process died: nobody knows whether they got it."""
        for letter in letters:
            letter.failure = DeliveryError(Reason.UNKNOWN, DIED, in_doubt=True)
            with suppress(ValidationFailed, WrongVariable):
                letter.content = post.content.message_for(
                    letter.subscriber, self._default_lang, most=2**31
                )
        await self.settle(post, tx, letters)

    async def settle_left(self, post: SendContext, tx: Tx, job: Job) -> None:
        """Settles those whom a process that died had in hand: nobody knows whether they got it. On a platform
        that drops repeats they are sent to again."""
        mailing = post.mailing
        way = await store.find_way(tx, *mailing.key, post.line.key)
        if way is None or not way.in_hand:
            return
        found = await self._subscribers.get_many(
            tx, [(mailing.project_id, subscriber_id) for subscriber_id in way.in_hand]
        )
        letters = [RecipientDelivery(subscriber, 0, job) for subscriber in found.values()]
        if post.repeats and mailing.status == "running":
            await self.repeat(post, tx, letters)
        else:
            await self.give_up(post, tx, letters)
        await store.set_way(tx, *mailing.key, replace(way, in_hand=[]))

    async def settle_late(
        self, post: SendContext, tx: Tx, letters: Sequence[RecipientDelivery]
    ) -> int:
        """Writes down letters that were sent by who is not the way's runner any more, as it stood still.
        Whoever has it now found them in hand, and gives them up as `unknown`; returns how many they had."""
        sent = [each for each in letters if each.failure is None and each.message_ref is not None]
        await self.settle(post, tx, sent)
        known = await ledger.correct(tx, post.mailing, [each.subscriber_id for each in sent])
        late = [
            (letter, replace(self._message(post, letter), message_id=known[letter.subscriber_id]))
            for letter in sent
            if letter.subscriber_id in known
        ]
        endings = [FinalStatus(message, "sent", ref=letter.message_ref) for letter, message in late]
        await correct(tx, endings)
        await store.count(tx, post.mailing, sent=len(late), failed=-len(late), unknown=-len(late))
        await self._events.emit_many(
            tx,
            [
                success_event(Delivery(letter.job, message, letter.subscriber))
                for letter, message in late
            ],
        )
        return len(late)

    async def _tell(
        self, post: SendContext, tx: Tx, ended: Sequence[tuple[RecipientDelivery, FinalStatus]]
    ) -> None:
        """Adds the messages, and emits an event of each."""
        endings = [ending for _, ending in ended]
        await add_ended(tx, endings, self._clock.now_ms())
        tx.on_commit(partial(self._count, endings))
        events = []
        for letter, ending in ended:
            delivery = Delivery(letter.job, ending.message, letter.subscriber)
            failure = letter.failure
            events.append(
                success_event(delivery) if failure is None else failure_event(delivery, failure)
            )
        await self._events.emit_many(tx, events)
        for letter in _lost([letter for letter, _ in ended]):
            assert letter.failure is not None, "that is how they were lost"
            subscriber, reason = letter.subscriber, str(letter.failure.reason)
            await self._subscribers.block(tx, subscriber.bot, subscriber.user_id, reason=reason)

    def _again(self, post: SendContext, letter: RecipientDelivery) -> Outcome | None:
        """When a letter is to be sent again; None if it has come to its end.

        A platform that asks to wait takes up none of the attempts, only time; what is in doubt is not
        tried again (docs/decisions/0007-crash-during-delivery.md), unless the platform drops repeats.
        """
        failure, now_ms = letter.failure, self._clock.now_ms()
        in_doubt = letter.in_doubt or (failure is not None and failure.in_doubt)
        if letter.again_in_ms is not None:
            return Outcome(
                letter.subscriber_id,
                "queued",
                reason=DOUBT if in_doubt else None,
                run_at_ms=now_ms + letter.again_in_ms,
                refused_from_ms=letter.refused_from_ms,
            )
        if failure is None or not failure.reason.retryable:
            return None
        if failure.in_doubt and not post.repeats:
            return None
        limits = self._limits
        is_refused = failure.only_waits
        # Since its first refusal: a mailing may well take longer, by its pace or a pause.
        since_ms = letter.refused_from_ms or now_ms
        if is_refused:
            is_over = now_ms - since_ms >= limits.delivery_hours * 3600 * 1000
        else:
            is_over = letter.attempts + 1 >= limits.delivery_attempts
        if is_over:
            return None
        # All of a closed line waits, so nobody need wait for themselves.
        run_at_ms = (
            now_ms
            if is_refused and post.line.closed
            else post.line.retry_at_ms(failure, BACKOFF, letter.attempts + 1)
        )
        tries = 0 if is_refused else 1
        return Outcome(
            letter.subscriber_id,
            "queued",
            tries,
            reason=DOUBT if in_doubt else None,
            error=failure.text,
            run_at_ms=run_at_ms,
            refused_from_ms=since_ms if is_refused else None,
        )

    def _ending(self, post: SendContext, letter: RecipientDelivery) -> FinalStatus:
        message, failure = self._message(post, letter), letter.failure
        if failure is None:
            return FinalStatus(message, "sent", ref=letter.message_ref)
        if failure.in_doubt or letter.in_doubt:
            return FinalStatus(message, "unknown", reason="unknown", error=failure.text)
        return FinalStatus(message, "failed", reason=str(failure.reason), error=failure.text)

    def _message(self, post: SendContext, letter: RecipientDelivery) -> Message:
        mailing, subscriber = post.mailing, letter.subscriber
        return Message(
            project_id=mailing.project_id,
            message_id=new_id("msg"),
            subscriber_id=subscriber.subscriber_id,
            channel=subscriber.channel,
            bot=subscriber.bot,
            status="queued",
            content=letter.content or post.content.unfilled,
            metadata=mailing.metadata,
            reason=DOUBT if letter.in_doubt else None,
            error=None,
            attempts=letter.attempts + 1,
            message_ref=None,
            created_at_ms=self._clock.now_ms(),
            expires_at_ms=mailing.expires_at_ms,
            finished_at_ms=None,
            permission=mailing.permission,
            job_id=mailing.job_id,
        )


def _lost(letters: Sequence[RecipientDelivery]) -> list[RecipientDelivery]:
    """Letters to those who are to be unsubscribed."""
    return [each for each in letters if each.failure and each.failure.reason.should_unsubscribe]


def _outcome(letter: RecipientDelivery, ending: FinalStatus) -> Outcome:
    assert ending.status != "sending", "what is on its way has no outcome"
    return Outcome(
        letter.subscriber_id,
        ending.status,
        tries=1,
        message_id=ending.message.message_id,
        reason=ending.reason,
        error=ending.error,
    )
