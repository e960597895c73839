"""Replays: redelivers the events since a time that did not arrive at a webhook."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.events import Event, Events
from msgsvc_core.jobs import BULK, Job, JobContext, JobQueue, JobSpec, NewJob
from msgsvc_core.kernel.clock import DAY_MS, Clock, to_rfc3339
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.models import DeliveryStatus, ReplayWebhookBody, Webhook, WebhookReplayAnswer
from msgsvc_webhooks.service import Webhooks, body_of, new_delivery

REPLAY = "webhooks.replay"

#: Events that are looked at in one transaction.
CHUNK = 500


class Replays:
    """The plugin's in-process API: `service.get(Replays)`."""

    def __init__(self, *, clock: Clock, events: Events, jobs: JobQueue, webhooks: Webhooks) -> None:
        self._clock = clock
        self._events = events
        self._jobs = jobs
        self._webhooks = webhooks

    @property
    def spec(self) -> JobSpec:
        return JobSpec(REPLAY, self.replay)

    async def start(
        self, tx: Tx, project_id: str, webhook_id: str, body: ReplayWebhookBody
    ) -> WebhookReplayAnswer:
        """Has the events since `body.since` looked at, in the background.

        Raises `NotFound`; `Conflict` for a disabled webhook, and while another replay of it runs;
        `ValidationFailed` for a time in the future, before the journal, or of too many events.
        """
        webhook = await self._webhooks.get_active(tx, project_id, webhook_id)
        now_ms = self._clock.now_ms()
        self._check_since(body.since, now_ms)
        limit = self._webhooks.settings.replay_events
        count = await self._events.count(
            tx, project_id, webhook.events, since_ms=body.since, until_ms=now_ms, limit=limit + 1
        )
        if count > limit:
            raise ValidationFailed(
                "more than {limit} events happened since then", field="since", limit=limit
            )
        await tx.lock(f"replay of {webhook_id}")
        if await self._jobs.has_open(tx, REPLAY, webhook_id):
            raise Conflict("a replay of this webhook is under way; wait until it has ended")
        job = _job(webhook, body.since, now_ms, None, include_delivered=body.include_delivered)
        await self._jobs.enqueue(tx, job)
        return WebhookReplayAnswer(
            webhook_id=webhook_id,
            since=to_rfc3339(body.since),
            until=to_rfc3339(now_ms),
            include_delivered=body.include_delivered,
            events=count,
        )

    def _check_since(self, since_ms: int, now_ms: int) -> None:
        if since_ms > now_ms:
            raise ValidationFailed("must not be in the future", field="since")
        # Older deliveries may be forgotten, and what had arrived would be sent again.
        days = self._webhooks.settings.journal_days
        if since_ms < now_ms - days * DAY_MS:
            raise ValidationFailed("must be within the last {days} days", field="since", days=days)

    async def replay(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Goes through one chunk of events, and leaves the rest to the next job."""
        for job in jobs:
            await self._replay(ctx, job)

    async def _replay(self, ctx: JobContext, job: Job) -> None:
        payload = job.payload
        project_id = job.project_id or ""
        async with ctx.completing(job) as tx:
            webhook = await store.find(tx, project_id, payload["webhook_id"])
            if webhook is None or webhook.status != "active":
                return
            events = await self._events.between(
                tx,
                project_id,
                webhook.events,
                since_ms=payload["since_ms"],
                until_ms=payload["until_ms"],
                after=payload["after"],
                limit=CHUNK,
            )
            await self._queue_chunk(tx, webhook, events, include_delivered=payload["again"])
            if len(events) == CHUNK:
                rest = _job(
                    webhook,
                    payload["since_ms"],
                    payload["until_ms"],
                    events[-1].event_id,
                    include_delivered=payload["again"],
                )
                await self._jobs.enqueue(tx, rest)

    async def _queue_chunk(
        self, tx: Tx, webhook: Webhook, events: Sequence[Event], *, include_delivered: bool
    ) -> None:
        if not events:
            return
        now_ms = self._clock.now_ms()
        found = await journal.of_events(tx, webhook, [event.event_id for event in events])
        # What is new comes after what waits already, and behind what happens meanwhile.
        new = [
            new_delivery(webhook, event, body_of(event), now_ms)
            for event in events
            if event.event_id not in found
        ]
        await self._webhooks.queue(tx, new, priority=BULK)
        again = [
            delivery_id
            for deliveries in found.values()
            for delivery_id in _to_repeat(deliveries, include_delivered=include_delivered)
        ]
        if again:
            begun = await journal.restart(tx, webhook.project_id, again, now_ms)
            await self._webhooks.enqueue(
                tx, webhook.project_id, webhook.webhook_id, begun, priority=BULK
            )


def _to_repeat(
    deliveries: Sequence[tuple[str, DeliveryStatus]], *, include_delivered: bool
) -> list[str]:
    """Which of an event's deliveries to a webhook is restarted: at most one."""
    by_status = {status: delivery_id for delivery_id, status in sorted(deliveries)}
    if "pending" in by_status:
        return []
    if "delivered" in by_status:
        return [by_status["delivered"]] if include_delivered else []
    return [delivery_id for delivery_id, _ in sorted(deliveries)[-1:]]


def _job(
    webhook: Webhook,
    since_ms: int,
    until_ms: int,
    after: str | None,
    *,
    include_delivered: bool,
) -> NewJob:
    return NewJob(
        REPLAY,
        {
            "webhook_id": webhook.webhook_id,
            "since_ms": since_ms,
            "until_ms": until_ms,
            "after": after,
            "again": include_delivered,
        },
        key=webhook.webhook_id,
        priority=BULK,
        project_id=webhook.project_id,
    )
