"""Background jobs: outcomes of messages with codes, and the hourly purge."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.channels import Reason
from msgsvc_core.channels.system_messages.outbox import EXPIRED, SENT
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_steps
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp import events as names
from msgsvc_otp import store
from msgsvc_otp.by_route import CodeRoutes
from msgsvc_otp.models import OneTimeCode
from msgsvc_otp.sending import TOLD
from msgsvc_otp.service import emit

#: Days for which a code's outcome can be looked up.
KEPT_DAYS = 7


class CodeJobs:
    """Records outcomes of messages with codes, and deletes old codes."""

    def __init__(
        self, *, clock: Clock, subscribers: Subscribers, events: Events, by_route: CodeRoutes
    ) -> None:
        self._by_route = by_route
        self._clock = clock
        self._subscribers = subscribers
        self._events = events

    def specs(self) -> list[JobSpec]:
        return [
            JobSpec(TOLD, self.on_outcome),
            JobSpec("otp.purge", self.purge, every_s=3600),
            *self._by_route.specs(),
        ]

    async def on_outcome(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """The messenger took a message with a code, or did not."""
        async with ctx.completing(*jobs) as tx:
            for job in jobs:
                end = self._sent if job.payload["outcome"] == SENT else self._failed
                await end(tx, job.payload)

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Deletes codes that were asked for more than `KEPT_DAYS` ago."""
        before_ms = self._clock.now_ms() - KEPT_DAYS * DAY_MS
        await in_steps(ctx, lambda tx, most: store.purge(tx, before_ms, most))

    async def _sent(self, tx: Tx, told: Mapping[str, Any]) -> None:
        project_id, now_ms = told["project_id"], self._clock.now_ms()
        code = await store.mark_sent(tx, project_id, told["otp_id"], now_ms=now_ms)
        if told.get("step") is not None:
            code = await self._sent_by_step(tx, told, now_ms)
        # None: reported before, or the person was erased meanwhile.
        if code is not None and code.subscriber_id is not None:
            subscriber = await self._subscribers.get(tx, project_id, code.subscriber_id)
            await emit(self._events, tx, names.SENT, code, subscriber)

    async def _sent_by_step(
        self, tx: Tx, told: Mapping[str, Any], now_ms: int
    ) -> OneTimeCode | None:
        """The code, as it was sent by that step of its route: it may be at a further one by now."""
        project_id, otp_id = told["project_id"], told["otp_id"]
        subscriber_id = await store.mark_step_sent(
            tx, project_id, otp_id, told["step"], now_ms=now_ms
        )
        code = await store.find(tx, project_id, otp_id)
        if code is None or subscriber_id is None:
            return None
        return replace(code, subscriber_id=subscriber_id)

    async def _failed(self, tx: Tx, told: Mapping[str, Any]) -> None:
        project_id, outcome = told["project_id"], told["outcome"]
        code = await store.find(tx, project_id, told["otp_id"])
        if code is None or code.subscriber_id is None:
            return
        subscriber_id = told.get("subscriber_id", code.subscriber_id)
        if outcome != EXPIRED and Reason(outcome).should_unsubscribe:
            # The person before the code, as an erasure has them: two who go the other way would wait
            # for each other.
            found = await self._subscribers.get_many(tx, [(project_id, subscriber_id)])
            for subscriber in found.values():
                await self._subscribers.block(
                    tx, told["channel"], subscriber.user_id, reason=outcome
                )
        step = told.get("step")
        if step is None:
            await store.mark_failed(tx, project_id, code.otp_id, outcome)
            return
        await store.mark_step_failed(tx, project_id, code.otp_id, step, outcome)
        await self._by_route.go_on(tx, project_id, code.otp_id, step, reason=outcome)
