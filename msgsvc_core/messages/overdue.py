"""Ends messages whose channel has made no calls for too long, and those that have expired on any channel."""

from collections.abc import Sequence

from msgsvc_core.channels.health.overdue import GROUP, GROUPS, ClosedChannel
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages import store
from msgsvc_core.messages.deliveries import Delivery, DeliveryLoader, why_skipped
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.routing.progress import EXPIRED, Obstacle
from msgsvc_core.subscribers.service import Subscribers


class OverdueMessages:
    """Messages that wait in lanes. `max_wait_ms` is how long they may wait for a channel that makes no
    calls, in milliseconds."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        channels: Channels,
        subscribers: Subscribers,
        loader: DeliveryLoader,
        outcomes: MessageOutcomes,
        max_wait_ms: int,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._channels = channels
        self._subscribers = subscribers
        self._loader = loader
        self._outcomes = outcomes
        self._max_wait_ms = max_wait_ms

    async def end_overdue(self, ctx: JobContext, closed: ClosedChannel) -> bool:
        """Fails messages that have waited for the channel for `max_wait_ms`; those with a route go on to
        the next step. See `channels.health.overdue.WaitingWork`."""
        until_ms = self._clock.now_ms() - self._max_wait_ms
        if closed.since_ms > until_ms:
            return True
        for _ in range(GROUPS):
            if ctx.stopping:
                return False
            async with ctx.transaction() as tx:
                jobs = await self._jobs.take_overdue(
                    tx, lane_of(closed.key), JOB, until_ms=until_ms, limit=GROUP
                )
                await self._fail(tx, closed, jobs)
            if len(jobs) < GROUP:
                return True
        return False

    async def _fail(self, tx: Tx, closed: ClosedChannel, jobs: Sequence[Job]) -> None:
        now_ms, channel = self._clock.now_ms(), await self._channels.find(closed.key)
        failed: list[Delivery] = []
        unsent: list[tuple[Delivery, Obstacle | None]] = []
        for delivery in await self._loader.load_in(tx, jobs):
            message = delivery.message
            if message.status not in {"queued", "sending"}:
                continue
            why = why_skipped(message, delivery.subscriber, channel, now_ms)
            if why is not None or delivery.in_doubt:
                unsent.append((delivery, why))
            else:
                delivery.failure = closed.failure(self._max_wait_ms)
                failed.append(delivery)
        ended = await self._outcomes.end_unsent(tx, unsent)
        if failed:
            ended += await self._outcomes.settle(tx, failed)
        await self._outcomes.count(tx, ended)

    async def end_expired(self, ctx: JobContext) -> None:
        """Skips queued messages whose `expires_in` is over, so that their projects learn it in time, however
        long the lanes are. Their jobs find nothing to do."""
        for _ in range(GROUPS):
            if ctx.stopping:
                return
            async with ctx.transaction() as tx:
                expired = await store.lock_expired(tx, self._clock.now_ms(), GROUP)
                people = await self._subscribers.get_many(
                    tx, sorted({(each.project_id, each.subscriber_id) for each in expired})
                )
                ended = await self._outcomes.end_unsent(
                    tx,
                    [
                        (
                            Delivery(
                                _no_job(each.project_id, each.created_at_ms),
                                each,
                                people.get((each.project_id, each.subscriber_id)),
                            ),
                            EXPIRED,
                        )
                        for each in expired
                    ],
                )
                await self._outcomes.count(tx, ended)
            if len(expired) < GROUP:
                return


def _no_job(project_id: str, created_at_ms: int) -> Job:
    """Stands for the job of a message that ends without one: it stays in its lane."""
    return Job("", JOB, "", {}, 1, 0, created_at_ms, project_id)
