"""Webhooks: endpoints, their events, secrets and deliveries."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.events import Event, Events
from msgsvc_core.jobs import NORMAL, URGENT, Job, JobQueue, NewJob, inspection
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import Conflict, InvalidUrl, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import SecretBox
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard
from msgsvc_core.security.signing import new_secret
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.calls import LANE
from msgsvc_webhooks.events import TEST, WebhookTest
from msgsvc_webhooks.models import (
    Attempt,
    CreateWebhookBody,
    Delivery,
    DeliveryQuery,
    UpdateWebhookBody,
    Webhook,
)
from msgsvc_webhooks.retries import LAST_STEP
from msgsvc_webhooks.sender import Sender
from msgsvc_webhooks.settings import WebhookSettings

DELIVER = "webhooks.deliver"

_NO_CAUSES: Mapping[str, str] = {}

#: A delivery and its attempts, the first one first.
Logged = tuple[Delivery, list[Attempt]]

#: Milliseconds for which a replaced secret still signs (decision 0075: 24 hours).
OLD_SECRET_MS = 24 * 3600 * 1000

#: Maximum number of active signing secrets. Each adds a `v1=` to a header, and header size is limited
#: everywhere.
MAX_VALID_SECRETS = 5


class Webhooks:
    """The plugin's in-process API: `service.get(Webhooks)`.

    `header_prefix` is the prefix of its header names.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        settings: WebhookSettings,
        secrets: SecretBox,
        jobs: JobQueue,
        events: Events,
        guard: OutboundGuard,
        header_prefix: str,
    ) -> None:
        self._clock = clock
        self.settings = settings
        self._secrets = secrets
        self._jobs = jobs
        self._events = events
        self._guard = guard
        self._sender = Sender(settings, guard, clock, header_prefix)

    async def send(self, url: str, delivery: Delivery, secrets: Sequence[str]) -> Attempt:
        """One delivery attempt, as `Sender.send` makes it."""
        return await self._sender.send(url, delivery, secrets)

    async def close(self) -> None:
        """Closes the connections to receivers."""
        await self._sender.close()

    async def create(self, tx: Tx, project_id: str, body: CreateWebhookBody) -> tuple[Webhook, str]:
        """A new webhook and its signing secret, which can't be read again.

        Raises `InvalidUrl`, `ValidationFailed` for an unknown event, `Conflict` at the limit.
        """
        self._check_url(body.url)
        events = self._known_events(body.events)
        await tx.lock(f"webhooks of {project_id}")
        limit = self.settings.endpoints_per_project
        if await store.count(tx, project_id) >= limit:
            raise Conflict("a project has at most {limit} webhooks; delete one first", limit=limit)
        now_ms = self._clock.now_ms()
        webhook = Webhook(
            project_id=project_id,
            webhook_id=new_id("whe"),
            url=body.url,
            events=events,
            description=body.description,
            status="active",
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        await store.insert(tx, webhook)
        return webhook, await self._add_secret(tx, project_id, webhook.webhook_id)

    async def get(self, tx: Tx, project_id: str, webhook_id: str) -> Webhook:
        """Raises `NotFound`, for another project's id as well."""
        webhook = await store.find(tx, project_id, webhook_id)
        if webhook is None:
            raise _not_found(webhook_id)
        return webhook

    async def page(self, tx: Tx, project_id: str, after: str | None, limit: int) -> list[Webhook]:
        """Up to `limit`, newest first, from `after` on."""
        return await store.list_page(tx, project_id, after, limit)

    async def update(
        self, tx: Tx, project_id: str, webhook_id: str, body: UpdateWebhookBody
    ) -> Webhook:
        """The webhook after the change. Raises `NotFound`, `InvalidUrl`, `ValidationFailed`."""
        changes: dict[str, Any] = body.model_dump(include=body.model_fields_set)
        if "url" in changes:
            self._check_url(changes["url"])
        if "events" in changes:
            changes["events"] = self._known_events(changes["events"])
        if "url" in changes or "status" in changes:
            # Its record so far says nothing about the new receiver.
            changes |= {"failing_since_ms": None, "disabled_reason": None}
        now_ms = self._clock.now_ms()
        if not await store.update(tx, project_id, webhook_id, changes, now_ms):
            raise _not_found(webhook_id)
        return await self.get(tx, project_id, webhook_id)

    async def delete(self, tx: Tx, project_id: str, webhook_id: str) -> None:
        """Removes a webhook and cancels its pending deliveries. Raises `NotFound`."""
        if not await store.delete(tx, project_id, webhook_id):
            raise _not_found(webhook_id)

    async def rotate_secret(self, tx: Tx, project_id: str, webhook_id: str) -> tuple[str, int]:
        """A new secret, and the Unix milliseconds until which the old one signs as well.

        Raises `NotFound`, and `Conflict` if too many old ones are still valid.
        """
        now_ms = self._clock.now_ms()
        # The update comes first: its lock on the row makes rotations wait for one another.
        if not await store.update(tx, project_id, webhook_id, {}, now_ms):
            raise _not_found(webhook_id)
        valid = await store.valid_secrets(tx, project_id, webhook_id, now_ms)
        if len(valid) >= MAX_VALID_SECRETS:
            raise Conflict(
                "the webhook has {count} valid secrets; wait until an old one has ended",
                count=len(valid),
            )
        until_ms = now_ms + OLD_SECRET_MS
        await store.expire_secrets(tx, project_id, webhook_id, now_ms=now_ms, until_ms=until_ms)
        return await self._add_secret(tx, project_id, webhook_id), until_ms

    def unseal(self, webhook_id: str, secrets: Sequence[str]) -> list[str]:
        """A webhook's secrets themselves. Raises `DecryptionError` if our keys don't open them, or they are
        another webhook's."""
        return [self._secrets.decrypt(secret, _row(webhook_id)) for secret in secrets]

    async def deliveries(
        self,
        tx: Tx,
        project_id: str,
        webhook_id: str,
        query: DeliveryQuery,
        *,
        ascending: bool = False,
    ) -> list[Logged]:
        """Deliveries with their attempts, newest or oldest first, one more than the page holds.

        Raises `NotFound`.
        """
        await self.get(tx, project_id, webhook_id)
        found = await journal.list_page(tx, project_id, webhook_id, query, ascending=ascending)
        return await self._logged(tx, found)

    async def delivery(self, tx: Tx, project_id: str, delivery_id: str) -> Logged:
        """One delivery with its attempts and their headers. Raises `NotFound`."""
        delivery = await journal.find(tx, project_id, delivery_id)
        if delivery is None:
            raise NotFound("there is no delivery {delivery_id!r}", delivery_id=delivery_id)
        return delivery, await journal.attempts_with_headers(tx, project_id, delivery_id)

    async def _logged(self, tx: Tx, deliveries: Sequence[Delivery]) -> list[Logged]:
        if not deliveries:
            return []
        ids = [delivery.delivery_id for delivery in deliveries]
        attempts = await journal.attempts_of(tx, deliveries[0].project_id, ids)
        return [(delivery, attempts.get(delivery.delivery_id, [])) for delivery in deliveries]

    async def send_test(self, tx: Tx, project_id: str, webhook_id: str) -> Delivery:
        """Sends a `webhook.test` to this webhook alone, in one attempt.

        Raises `NotFound`, and `Conflict` for a disabled webhook.
        """
        webhook = await self.get_active(tx, project_id, webhook_id)
        now_ms = self._clock.now_ms()
        fields = WebhookTest(webhook_id=webhook_id)
        data = {"occurred_at": to_rfc3339(now_ms), **fields.to_data()}
        event = Event(new_id("evt"), project_id, TEST, data, now_ms)
        # The user waits for the result; a retry tomorrow would not help.
        delivery = new_delivery(webhook, event, body_of(event), now_ms, step=LAST_STEP)
        await self.queue(tx, [delivery], priority=URGENT)
        return delivery

    async def redeliver(self, tx: Tx, project_id: str, delivery_id: str) -> Logged:
        """Restarts a delivery's retry plan under the same id, also for one that waits for its next attempt.

        Raises `NotFound`, and `Conflict` during an attempt, or if its webhook is disabled or deleted.
        """
        delivery, attempts = await self.delivery(tx, project_id, delivery_id)
        await self._check_receiver(tx, delivery)
        now_ms = self._clock.now_ms()
        job = _job(project_id, delivery.webhook_id, delivery_id, NORMAL)
        if await self._jobs.bring_forward(tx, job):
            await journal.restart_plan(tx, project_id, delivery_id, now_ms)
        elif await journal.restart(tx, project_id, [delivery_id], now_ms):
            await self._jobs.enqueue(tx, job)
        else:
            raise Conflict("the delivery is being tried, or about to be")
        return (await self.delivery(tx, project_id, delivery_id))[0], attempts

    async def restart(self, tx: Tx, job: Job) -> None:
        """Puts the delivery of a job that has failed for good at the beginning of its plan.

        Raises `Conflict` if the delivery is not kept any more, has arrived or is tried by another job,
        or its webhook is disabled or deleted.
        """
        project_id, delivery_id = job.project_id or "", job.payload["delivery_id"]
        delivery = await journal.find(tx, project_id, delivery_id)
        if delivery is None:
            raise Conflict("its delivery is no longer kept; discard this job")
        if delivery.status == "delivered":
            raise Conflict("its delivery has succeeded in the meantime; discard this job")
        await self._check_receiver(tx, delivery)
        if delivery.status == "pending" and await inspection.has_open_twin(tx, job):
            # By the project's own redelivery.
            raise Conflict("the delivery is being tried, or about to be")
        now_ms = self._clock.now_ms()
        if not await journal.restart(tx, project_id, [delivery_id], now_ms):
            await journal.restart_plan(tx, project_id, delivery_id, now_ms)

    async def _check_receiver(self, tx: Tx, delivery: Delivery) -> None:
        """Raises `Conflict` for a webhook that is disabled or deleted."""
        if await store.find(tx, delivery.project_id, delivery.webhook_id) is None:
            raise Conflict("the webhook of this delivery was deleted")
        await self.get_active(tx, delivery.project_id, delivery.webhook_id)

    async def get_active(self, tx: Tx, project_id: str, webhook_id: str) -> Webhook:
        """Raises `NotFound`, and `Conflict` for a disabled webhook."""
        webhook = await self.get(tx, project_id, webhook_id)
        if webhook.status != "active":
            raise Conflict("the webhook is disabled; set its status to active first")
        return webhook

    async def queue_deliveries(self, tx: Tx, events: Sequence[Event]) -> None:
        """Has events delivered to every active webhook that wants them, if `tx` commits."""
        active = await store.list_active(tx, {event.project_id for event in events})
        if not active:
            return
        now_ms = self._clock.now_ms()
        deliveries: list[Delivery] = []
        causes: dict[str, str] = {}
        for event in events:
            wanting = [
                webhook for webhook in active.get(event.project_id, ()) if webhook.wants(event.name)
            ]
            if wanting:
                body = body_of(event)
                deliveries += [new_delivery(webhook, event, body, now_ms) for webhook in wanting]
                if event.traceparent is not None:
                    causes[event.event_id] = event.traceparent
        await self.queue(tx, deliveries, causes=causes)

    async def queue(
        self,
        tx: Tx,
        deliveries: Sequence[Delivery],
        *,
        priority: int = NORMAL,
        causes: Mapping[str, str] = _NO_CAUSES,
    ) -> None:
        """Adds deliveries, and the jobs that make them. `causes` are the spans in which events happened, as
        `traceparent` by the event's id; by default the current one."""
        if deliveries:
            await journal.insert_many(tx, deliveries)
            jobs = (
                _job(
                    each.project_id,
                    each.webhook_id,
                    each.delivery_id,
                    priority,
                    causes.get(each.event_id),
                )
                for each in deliveries
            )
            await self._jobs.enqueue(tx, *jobs)

    async def enqueue(
        self,
        tx: Tx,
        project_id: str,
        webhook_id: str,
        delivery_ids: Sequence[str],
        *,
        priority: int,
    ) -> None:
        """Adds the jobs that make deliveries which are there."""
        jobs = (_job(project_id, webhook_id, each, priority) for each in delivery_ids)
        await self._jobs.enqueue(tx, *jobs)

    async def _add_secret(self, tx: Tx, project_id: str, webhook_id: str) -> str:
        secret = new_secret()
        encrypted = self._secrets.encrypt(secret, _row(webhook_id))
        await store.insert_secret(tx, project_id, webhook_id, new_id("whs"), encrypted)
        return secret

    def _check_url(self, url: str) -> None:
        # Names are not resolved here: that would call another host inside the transaction. The
        # guarded connector resolves and checks them at every attempt.
        try:
            self._guard.check_url(url)
        except ForbiddenTarget as error:
            if error.allowed_by is None:
                raise InvalidUrl.because(error, field="url") from None
            refusal = InvalidUrl.because(error).said_as(
                "{reason} (the operator allows it by {setting} in [webhooks])",
                field="url",
                setting=error.allowed_by,
            )
            raise refusal from None

    def _known_events(self, names: Sequence[str]) -> tuple[str, ...]:
        """`names` without repetitions."""
        for number, name in enumerate(names):
            if name not in self._events.catalogue:
                field, plugin = f"events[{number}]", self._events.unloaded.get(name)
                if plugin is None:
                    raise ValidationFailed("there is no event {name!r}", field=field, name=name)
                raise ValidationFailed(
                    "there is no event {name!r}: its plugin {plugin!r} is installed, but not loaded",
                    field=field,
                    name=name,
                    plugin=plugin,
                )
        return tuple(dict.fromkeys(names))


def _row(webhook_id: str) -> tuple[str, str]:
    """What a webhook's secrets are bound to."""
    return "webhooks_secrets.encrypted", webhook_id


def body_of(event: Event) -> str:
    """The body of a request. It is serialized once and stored, so that exactly the signed bytes are sent
    in every attempt. Its `event_id` is that of the feed, and the same for every webhook."""
    data = {"event_id": event.event_id, **event.data}
    return json.dumps(
        {"event": event.name, "data": data}, ensure_ascii=False, separators=(",", ":")
    )


def new_delivery(
    webhook: Webhook, event: Event, body: str, now_ms: int, *, step: int = 0
) -> Delivery:
    """A delivery that is due now, at that step of the retry plan."""
    return Delivery(
        project_id=webhook.project_id,
        delivery_id=new_id("whd"),
        webhook_id=webhook.webhook_id,
        event_id=event.event_id,
        event=event.name,
        body=body,
        status="pending",
        attempts=0,
        step=step,
        created_at_ms=now_ms,
        first_attempt_at_ms=None,
        next_attempt_at_ms=now_ms,
        finished_at_ms=None,
    )


def _job(
    project_id: str,
    webhook_id: str,
    delivery_id: str,
    priority: int,
    traceparent: str | None = None,
) -> NewJob:
    return NewJob(
        DELIVER,
        {"delivery_id": delivery_id},
        lane=f"{LANE}:{webhook_id}",
        priority=priority,
        project_id=project_id,
        traceparent=traceparent,
    )


def _not_found(webhook_id: str) -> NotFound:
    return NotFound("there is no webhook {webhook_id!r}", webhook_id=webhook_id)
