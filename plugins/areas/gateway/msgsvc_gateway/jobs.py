"""Background jobs: outcomes of calls, the next channel after a failure, and the hourly purge."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.channels import Reason
from msgsvc_core.channels.system_messages.outbox import EXPIRED, SENT, BotOutbox
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_steps
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_gateway import events as names
from msgsvc_gateway import store
from msgsvc_gateway.models import GatewayMessage
from msgsvc_gateway.sending import TOLD, Calls

#: Days for which a message's outcome can be looked up, and a repeated request is recognised.
KEPT_DAYS = 7


class GatewayJobs:
    """Records outcomes, moves messages on, and deletes old ones."""

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
        outbox: BotOutbox,
        calls: Calls,
        events: Events,
    ) -> None:
        self._clock = clock
        self._subscribers = subscribers
        self._outbox = outbox
        self._calls = calls
        self._events = events

    def specs(self) -> list[JobSpec]:
        return [JobSpec(TOLD, self.on_outcome), JobSpec("gateway.purge", self.purge, every_s=3600)]

    async def on_outcome(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """A messenger took a message, or did not."""
        async with ctx.completing(*jobs) as tx:
            for job in jobs:
                end = self._sent if job.payload["outcome"] == SENT else self._failed
                await end(tx, job.payload)

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Deletes messages that were accepted more than `KEPT_DAYS` ago."""
        before_ms = self._clock.now_ms() - KEPT_DAYS * DAY_MS
        await in_steps(ctx, lambda tx, most: store.purge(tx, before_ms, most))

    async def _sent(self, tx: Tx, told: Mapping[str, Any]) -> None:
        message = await store.mark_sent(
            tx,
            told["project_id"],
            told["message_id"],
            told["step"],
            now_ms=self._clock.now_ms(),
        )
        if message is not None:
            await self._emit(tx, names.SENT, message)

    async def _failed(self, tx: Tx, told: Mapping[str, Any]) -> None:
        project_id, outcome = told["project_id"], told["outcome"]
        message = await store.find_waiting(tx, project_id, told["message_id"], told["step"])
        # None: reported before, or the person or the gateway is gone.
        if message is None or message.subscriber_id is None:
            return
        if outcome != EXPIRED and Reason(outcome).should_unsubscribe:
            subscriber = await self._subscribers.get(tx, project_id, message.subscriber_id)
            await self._subscribers.block(tx, told["channel"], subscriber.user_id, reason=outcome)
        if outcome == EXPIRED or not await self._move_on(tx, message, outcome):
            failed = await store.mark_failed(
                tx, project_id, message.message_id, message.step, reason=outcome
            )
            if failed is not None:
                await self._emit(tx, names.FAILED, failed, reason=outcome)

    async def _move_on(self, tx: Tx, message: GatewayMessage, reason: str) -> bool:
        """Whether somebody else of the message's people is written to now."""
        if message.expires_at_ms <= self._clock.now_ms():
            return False
        keys = [(message.project_id, one) for one in message.people]
        known = await self._subscribers.get_many(tx, keys)
        assert message.sealed is not None, "it waits"
        content = self._outbox.unseal(message.sealed)
        for step in range(message.step + 1, len(message.people)):
            subscriber = known.get(keys[step])
            if subscriber is None or not self._subscribers.takes_codes(subscriber):
                continue
            channel = await self._calls.find_channel(message.project_id, subscriber, content)
            if channel is None:
                continue
            moved = await store.move_on(
                tx,
                message.project_id,
                message.message_id,
                message.step,
                to_step=step,
                subscriber_id=subscriber.subscriber_id,
                channel=subscriber.channel,
                reason=reason,
            )
            if moved is not None:
                await self._calls.send(tx, moved, channel, subscriber.chat_id, content)
            return True
        return False

    async def _emit(self, tx: Tx, event: str, message: GatewayMessage, **fields: str) -> None:
        assert message.subscriber_id is not None, "its row goes with its subscriber"
        subscriber = await self._subscribers.get(tx, message.project_id, message.subscriber_id)
        ids = {"message_id": message.message_id, "gateway_id": message.gateway_id}
        await self._events.emit(
            tx, message.project_id, event, {**ids, **fields}, subscriber=subscriber
        )
