"""The plugin's door: what it adds to a service."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import Event, EventSpec
from msgsvc_core.jobs import JobSpec, LaneSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.service import Service
from msgsvc_webhooks.calls import CallsByLane, webhook_lanes
from msgsvc_webhooks.dashboard import pages
from msgsvc_webhooks.events import WEBHOOK_EVENTS
from msgsvc_webhooks.forgetting import forget
from msgsvc_webhooks.jobs import PURGE_JOB, REPLAY_JOB, deliver_job
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.outcomes import OutcomeWriter
from msgsvc_webhooks.replays import Replays
from msgsvc_webhooks.routes import router
from msgsvc_webhooks.service import Webhooks
from msgsvc_webhooks.settings import WebhookSettings


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("webhooks", WebhookSettings)


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [SealedColumn("webhooks_secrets", "encrypted")]


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("webhooks", Path(__file__).parent / "migrations")


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return WEBHOOK_EVENTS


@hookimpl
def register_services(service: Service) -> Mapping[type, Any]:
    webhooks = Webhooks(service)
    return {
        Webhooks: webhooks,
        Replays: Replays(service),
        CallsByLane: CallsByLane(service),
        OutcomeWriter: OutcomeWriter(service, webhooks.settings),
        AttemptMetrics: AttemptMetrics(service.metrics.registry),
    }


@hookimpl
def register_lanes(service: Service) -> Sequence[LaneSpec]:
    return [webhook_lanes(service.get(CallsByLane))]


@hookimpl
def register_jobs(service: Service) -> Sequence[JobSpec]:
    return [deliver_job(service), REPLAY_JOB, PURGE_JOB]


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints


@hookimpl
async def on_stop(service: Service) -> None:
    await service.get(Webhooks).close()


@hookimpl
async def on_events(service: Service, tx: Tx, events: Sequence[Event]) -> None:
    await service.get(Webhooks).queue_deliveries(tx, events)


@hookimpl
async def erase_subscriber(service: Service, project_id: str, subscriber_id: str) -> None:
    await forget(service, project_id, subscriber_id)
