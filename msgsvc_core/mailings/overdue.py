"""Ends recipients of mailings whose channel has made no calls for too long, or whose mailing has expired
meanwhile."""

from collections.abc import Sequence
from dataclasses import replace

from msgsvc_core.channels.health.overdue import GROUP, GROUPS, ClosedChannel
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import ledger, store
from msgsvc_core.mailings.deliveries import RecipientDelivery, SendContext, has_expired
from msgsvc_core.mailings.ledger import DueRecipient
from msgsvc_core.mailings.models import Mailing, MailingShard
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.service import SEND_JOB, Mailings
from msgsvc_core.routing.progress import EXPIRED, NO_SUBSCRIBER
from msgsvc_core.subscribers.service import Subscribers


class OverdueRecipients:
    """Recipients who wait for a channel. `max_wait_ms` is how long they may wait for one that makes no calls,
    in milliseconds."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        gates: OutboundGates,
        subscribers: Subscribers,
        mailings: Mailings,
        outcomes: MailingOutcomes,
        max_wait_ms: int,
    ) -> None:
        self._clock = clock
        self._channels = channels
        self._gates = gates
        self._subscribers = subscribers
        self._mailings = mailings
        self._outcomes = outcomes
        self._max_wait_ms = max_wait_ms

    async def end_overdue(self, ctx: JobContext, closed: ClosedChannel) -> bool:
        """Fails recipients who have waited for `max_wait_ms`, and skips those of expired mailings; with a
        route they go on to the next channel. See `channels.health.overdue.WaitingWork`."""
        async with ctx.reading() as tx:
            waiting = await store.list_waiting(tx, closed.key)
        groups = GROUPS
        for mailing in waiting:
            after: str | None = ""
            while after is not None and self._is_over(mailing, closed):
                if groups <= 0 or ctx.stopping:
                    return False
                groups -= 1
                async with ctx.transaction() as tx:
                    after = await self._end_group(tx, mailing, closed, after)
        return True

    def _is_over(self, mailing: Mailing, closed: ClosedChannel) -> bool:
        return has_expired(mailing, self._clock.now_ms()) or self._has_waited(mailing, closed)

    def _has_waited(self, mailing: Mailing, closed: ClosedChannel) -> bool:
        # Since it was started or resumed: before, nobody waited for the channel.
        since_ms = max(closed.since_ms, mailing.timed_from_ms or mailing.created_at_ms)
        return self._clock.now_ms() - since_ms >= self._max_wait_ms

    async def _end_group(
        self, tx: Tx, mailing: Mailing, closed: ClosedChannel, after: str
    ) -> str | None:
        """Ends the next recipients; returns the last of them, or None if nobody is left."""
        locked = await store.lock_shard(tx, *mailing.key, closed.key)
        if locked is None or locked.mailing.status != "running" or not locked.is_project_active:
            return None
        mailing = locked.mailing
        # Read again under the lock: a statement of PostgreSQL that waited for it returns the shard of before.
        shard = await store.find_shard(tx, *mailing.key, closed.key)
        if shard is None or not self._is_over(mailing, closed):
            return None
        shard = shard.of_stage(mailing)
        waiting = await ledger.find_waiting(tx, mailing, shard, after, GROUP)
        if not waiting:
            await self._finish(tx, mailing, shard)
            return None
        await self._end(tx, mailing, closed, waiting)
        return waiting[-1].subscriber_id

    async def _end(
        self, tx: Tx, mailing: Mailing, closed: ClosedChannel, waiting: Sequence[DueRecipient]
    ) -> None:
        channel = await self._channels.find(closed.key)
        context = SendContext(mailing, channel, self._gates[closed.key])
        keys = [(mailing.project_id, each.subscriber_id) for each in waiting]
        people = {
            subscriber_id: person
            for (_, subscriber_id), person in (await self._subscribers.get_many(tx, keys)).items()
        }
        doubted: list[RecipientDelivery] = []
        failed: list[RecipientDelivery] = []
        skipped: list[tuple[str, str]] = []
        for each in waiting:
            person = people.get(each.subscriber_id)
            if person is None or person.status != "active":
                skipped.append((each.subscriber_id, NO_SUBSCRIBER.text))
                continue
            delivery = RecipientDelivery(
                _no_job(mailing),
                person,
                attempts=each.attempts,
                was_in_doubt=each.in_doubt,
                variant=each.variant,
            )
            if each.in_doubt:
                doubted.append(delivery)
            elif has_expired(mailing, self._clock.now_ms()):
                skipped.append((each.subscriber_id, EXPIRED.text))
            else:
                delivery.failure = closed.failure(self._max_wait_ms)
                failed.append(delivery)
        await self._outcomes.skip(context, tx, skipped, "" if channel is None else channel.name)
        await self._outcomes.give_up(context, tx, doubted)
        await self._outcomes.fail(context, tx, failed)

    async def _finish(self, tx: Tx, mailing: Mailing, shard: MailingShard) -> None:
        """Ends the shard that waits for nobody any more, so that the mailing can end."""
        if shard.in_flight or await ledger.has_next(tx, mailing, shard):
            return
        if await ledger.next_retry_ms(tx, mailing, shard.bot) is None:
            await store.set_shard(tx, *mailing.key, replace(shard, is_done=True))
            await self._mailings.complete(tx, mailing)


def _no_job(mailing: Mailing) -> Job:
    """Stands for the job of the shard, which waits in its lane."""
    return Job("", SEND_JOB, "", {}, 1, 0, mailing.created_at_ms, mailing.project_id)
