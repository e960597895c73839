"""Claims a shard's next recipients: retries that are due, then those who were not tried yet."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import ledger
from msgsvc_core.mailings.deliveries import (
    RecipientDelivery,
    RecipientSender,
    SendContext,
    obstacle,
)
from msgsvc_core.mailings.ledger import DueRecipient
from msgsvc_core.mailings.models import Mailing, MailingShard
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.subscribers.models import Subscriber


@dataclass(frozen=True, slots=True)
class Claimed:
    """Recipients who are in flight once the transaction is committed.

    `count` includes those who were skipped; `walked_to` is the position of the shard then.
    """

    deliveries: list[RecipientDelivery]
    count: int
    walked_to: str


class RecipientClaims:
    """The claims of one run of a shard."""

    def __init__(
        self,
        *,
        clock: Clock,
        recipients: RecipientSender,
        outcomes: MailingOutcomes,
        job: Job,
        gate: OutboundGate,
    ) -> None:
        self._clock = clock
        self._recipients = recipients
        self._outcomes = outcomes
        self._job = job
        self._gate = gate
        #: Whether there may be retries to claim; only this run creates them.
        self.has_retries = True

    async def claim(
        self,
        context: SendContext,
        tx: Tx,
        shard: MailingShard,
        limit: int,
        now_ms: int,
        in_flight: Collection[str] = (),
    ) -> Claimed:
        """Up to `limit` recipients, none of whom is in flight."""
        mailing = context.mailing
        retries = await self._due_retries(tx, mailing, now_ms, limit)
        found = await self._recipients.find_many(
            tx, mailing.project_id, [each.subscriber_id for each in retries]
        )
        new = await self._recipients.find_next(tx, mailing, shard, limit - len(retries), in_flight)
        found |= {each.subscriber_id: each for each in new}
        claimed = [*retries, *(DueRecipient(each.subscriber_id) for each in new)]
        if mailing.experiment is not None:
            claimed = await self._with_variants(tx, mailing, claimed)
        deliveries = await self._deliveries(context, tx, claimed, found)
        walked_to = new[-1].subscriber_id if new else shard.walked_to
        return Claimed(deliveries, len(claimed), walked_to)

    async def _with_variants(
        self, tx: Tx, mailing: Mailing, claimed: Sequence[DueRecipient]
    ) -> list[DueRecipient]:
        """Recipients with the variants that they get. In the second stage, whoever has surely got none yet
        gets the winner."""
        ids = [each.subscriber_id for each in claimed]
        variants = await ledger.find_variants(tx, *mailing.key, ids)
        if mailing.stage == "rest":
            free = [each.subscriber_id for each in claimed if not each.in_doubt]
            left = [each for each in free if variants.pop(each, None) is not None]
            await ledger.set_variants(tx, mailing, dict.fromkeys(left))
        return [replace(each, variant=variants.get(each.subscriber_id)) for each in claimed]

    async def _due_retries(
        self, tx: Tx, mailing: Mailing, now_ms: int, limit: int
    ) -> list[DueRecipient]:
        """Claims recipients whose retry is due."""
        # With a route also the runs of other shards create them.
        if not self.has_retries and mailing.route_id is None:
            return []
        retries = await ledger.due_retries(tx, mailing, self._gate.key, now_ms, limit)
        if retries:
            await ledger.claim_retries(tx, mailing, [each.subscriber_id for each in retries])
        else:
            next_ms = await ledger.next_retry_ms(tx, mailing, self._gate.key)
            self.has_retries = next_ms is not None
        return retries

    async def _deliveries(
        self,
        context: SendContext,
        tx: Tx,
        claimed: Sequence[DueRecipient],
        found: Mapping[str, Subscriber],
    ) -> list[RecipientDelivery]:
        """Deliveries to those of `claimed` who get one; the others are skipped."""
        now_ms = self._clock.now_ms()
        deliveries: list[RecipientDelivery] = []
        skipped: list[tuple[str, str]] = []
        #: Recipients who must not be sent to any more, and may have got the message before.
        doubtful: list[RecipientDelivery] = []
        is_paced = self._gate.paced_capacity() is not None
        for each in claimed:
            subscriber_id = each.subscriber_id
            subscriber = found.get(subscriber_id)
            if (why := obstacle(context, subscriber, now_ms)) is not None:
                if each.in_doubt and subscriber is not None:
                    doubtful.append(
                        RecipientDelivery(
                            self._job,
                            subscriber,
                            attempts=each.attempts + 1,
                            variant=each.variant,
                        )
                    )
                else:
                    skipped.append((subscriber_id, why.text))
                continue
            assert subscriber is not None, "who is missing is not subscribed"
            job = self._job
            if is_paced:
                job = replace(job, job_id=f"{job.job_id}:{subscriber_id}")
            deliveries.append(
                RecipientDelivery(
                    job,
                    subscriber,
                    attempts=each.attempts + 1,
                    rate_limited_since_ms=each.refused_from_ms,
                    was_in_doubt=each.in_doubt,
                    variant=each.variant,
                    began_ms=now_ms if each.began_ms is None else each.began_ms,
                )
            )
        channel = "" if context.channel is None else context.channel.name
        await self._outcomes.skip(context, tx, skipped, channel)
        await self._outcomes.give_up(context, tx, doubtful)
        return deliveries
