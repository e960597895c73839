"""The parts of the plugin, built from fakes, and rows of what they work on."""

import json
from typing import Any

from prometheus_client import CollectorRegistry

from msgsvc_core.jobs import Job, NewJob
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_core.telemetry.partition_metrics import PartitionMetrics
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, claimed
from msgsvc_webhooks import plugin
from msgsvc_webhooks.calls import CallsByLane
from msgsvc_webhooks.delivering import Deliveries
from msgsvc_webhooks.health import Health
from msgsvc_webhooks.jobs import WebhookJobs
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.models import Attempt, Delivery, Webhook
from msgsvc_webhooks.outcomes import OutcomeWriter
from msgsvc_webhooks.replays import Replays
from msgsvc_webhooks.service import DELIVER, Webhooks
from msgsvc_webhooks.settings import WebhookSettings

NOW_MS = FakeClock().now_ms()


URL = "https://shop.example/hook"


WEBHOOK = Webhook(PROJECT, "whe_1", URL, (), None, "active", 0, 0)


DELIVERY = Delivery(
    project_id=PROJECT,
    delivery_id="whd_1",
    webhook_id="whe_1",
    event_id="evt_1",
    event="event.tracked",
    body="{}",
    status="pending",
    attempts=0,
    step=0,
    created_at_ms=NOW_MS,
    first_attempt_at_ms=None,
    next_attempt_at_ms=NOW_MS,
    finished_at_ms=None,
)


#: How the core's registry of metrics calls a counter's value.
COUNTED = "msgsvc_webhooks_attempts_total"


def row_of(value: Webhook | Delivery) -> dict[str, Any]:
    """As the database has it."""
    row = {name: getattr(value, name) for name in value.__dataclass_fields__}
    return {**row, "events": json.dumps(value.events)} if isinstance(value, Webhook) else row


def job_of(delivery: Delivery = DELIVERY) -> Job:
    payload = {"delivery_id": delivery.delivery_id}
    return claimed(NewJob(DELIVER, payload, lane="webhook:whe_1", project_id=PROJECT))


class Sending(Webhooks):
    """Answers an attempt by the next of `answers`: a status, or what the other side does; `sent` holds what
    was sent."""

    def __init__(self, core: FakeContext, *answers: int | str, **settings: Any) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str]] = []
        super().__init__(
            clock=core.clock,
            settings=WebhookSettings(**settings),
            secrets=core.secrets,
            jobs=core.jobs,
            events=core.events,
            guard=OutboundGuard(),
            header_prefix="X-Shop",
        )

    async def send(self, url: str, delivery: Delivery, secrets: Any) -> Attempt:
        self.sent.append((url, delivery.delivery_id))
        answer = self.answers.pop(0)
        status = answer if isinstance(answer, int) else None
        error = answer if isinstance(answer, str) else None
        return Attempt(self._clock.now_ms(), 5, status, error)


class Plugin:
    """The parts of the plugin, with what they say to each other."""

    def __init__(self, *answers: int | str, **settings: Any) -> None:
        self.core: FakeContext = plugin_context(plugin=plugin)
        self.settings = WebhookSettings(**settings)
        self.registry = CollectorRegistry()
        self.metrics = AttemptMetrics(self.registry)
        self.sending = Sending(self.core, *answers, **settings)
        self.calls = CallsByLane(clock=self.core.clock, jobs=self.core.jobs)
        self.ctx = FakeJobContext(self.core.db)

    def webhooks(self) -> Webhooks:
        return Webhooks(
            clock=self.core.clock,
            settings=self.settings,
            secrets=self.core.secrets,
            jobs=self.core.jobs,
            events=self.core.events,
            guard=OutboundGuard(),
            header_prefix="X-Shop",
        )

    def health(self) -> Health:
        return Health(
            clock=self.core.clock,
            events=self.core.events,
            settings=self.settings,
            metrics=self.metrics,
        )

    def writer(self) -> OutcomeWriter:
        return OutcomeWriter(
            clock=self.core.clock,
            dialect="sqlite",
            settings=self.settings,
            health=self.health(),
            metrics=self.metrics,
        )

    def deliveries(self) -> Deliveries:
        return Deliveries(
            clock=self.core.clock,
            db=self.core.db,
            webhooks=self.sending,
            writer=self.writer(),
            calls=self.calls,
        )

    def replays(self) -> Replays:
        return Replays(
            clock=self.core.clock,
            events=self.core.events,
            jobs=self.core.jobs,
            webhooks=self.sending,
        )

    def jobs(self) -> WebhookJobs:
        return WebhookJobs(
            clock=self.core.clock,
            webhooks=self.webhooks(),
            deliveries=self.deliveries(),
            replays=self.replays(),
            partitioning=self.partitioning(),
        )

    def partitioning(self) -> Partitioning:
        metrics = PartitionMetrics(CollectorRegistry())
        return Partitioning(clock=self.core.clock, db=self.core.db, min_mib=0, metrics=metrics)

    def counted(self, outcome: str) -> float | None:
        return self.registry.get_sample_value(COUNTED, {"outcome": outcome})

    def loaded(self, *deliveries: Delivery, webhook: Webhook = WEBHOOK, sealed: str = "") -> Any:
        """What the database answers when a batch is loaded."""
        sealed = sealed or self.core.secrets.encrypt(
            "whsec_x", ("webhooks_secrets.encrypted", "whe_1")
        )
        return [{**row_of(webhook), "encrypted": sealed}], [row_of(each) for each in deliveries]
