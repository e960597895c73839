"""Webhooks and deliveries of a core in memory, and a receiver whose answers are scripted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec, NewJob
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import PROJECT, MemoryCore
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.calls import LANE
from msgsvc_webhooks.models import Attempt, CreateWebhookBody, Delivery, Webhook
from msgsvc_webhooks.service import DELIVER, Webhooks, new_delivery

NOW_MS = FakeClock().now_ms()

URL = "https://shop.example/hook"

#: The event of a delivery for which a test names none.
EVENT = Event("evt_1", PROJECT, "event.tracked", {}, NOW_MS)


class ScriptedReceiver:
    """Each attempt ends with the next of `answers`; `called` has its URL and its delivery's id."""

    def __init__(self) -> None:
        self.answers: list[Attempt] = []
        self.called: list[tuple[str, str]] = []

    async def send(self, url: str, delivery: Delivery, _secrets: Sequence[str]) -> Attempt:
        self.called.append((url, delivery.delivery_id))
        return self.answers.pop(0)


def answered(status: int) -> Attempt:
    """An attempt that got a response."""
    return Attempt(NOW_MS, 5, status)


async def add_webhook(core: MemoryCore, tx: Tx, **columns: Any) -> Webhook:
    """A webhook for all events, with these columns of `webhooks_endpoints`."""
    webhooks = core.get(Webhooks)
    webhook, _secret = await webhooks.create(tx, PROJECT, CreateWebhookBody(url=URL))
    await store.update(tx, PROJECT, webhook.webhook_id, columns, core.clock.now_ms())
    return await webhooks.get(tx, PROJECT, webhook.webhook_id)


async def add_delivery(core: MemoryCore, tx: Tx, webhook: Webhook, **fields: Any) -> Delivery:
    """A delivery that is due now, without a job."""
    delivery = replace(new_delivery(webhook, EVENT, "{}", core.clock.now_ms()), **fields)
    await journal.insert_many(tx, [delivery])
    return delivery


def job_of(delivery: Delivery) -> NewJob:
    """The job that makes a delivery."""
    payload = {"delivery_id": delivery.delivery_id}
    return NewJob(DELIVER, payload, lane=f"{LANE}:{delivery.webhook_id}", project_id=PROJECT)


async def delivery_of(core: MemoryCore, delivery_id: str) -> Delivery:
    """A delivery as it is now."""
    async with core.db.read() as tx:
        found, _attempts = await core.get(Webhooks).delivery(tx, PROJECT, delivery_id)
    return found


async def happened(core: MemoryCore, tx: Tx, count: int = 1) -> list[Event]:
    """That many events of the project."""
    fields = {"name": "visit", "properties": {}}
    return [await core.events.emit(tx, PROJECT, "event.tracked", fields) for _ in range(count)]


def spec_of(core: MemoryCore, name: str) -> JobSpec:
    """What the plugin registers for jobs of that name."""
    [spec] = [each for each in core.service.job_specs if each.name == name]
    return spec


def counted(core: MemoryCore) -> dict[str, float]:
    """The attempts by outcome, of outcomes that there were."""
    value = core.metrics.registry.get_sample_value
    by_outcome = {
        outcome: value("msgsvc_webhooks_attempts_total", {"outcome": outcome})
        for outcome in ("delivered", "retried", "failed", "gone")
    }
    return {outcome: count for outcome, count in by_outcome.items() if count}
