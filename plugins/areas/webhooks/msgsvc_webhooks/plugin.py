"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import Event, EventSpec
from msgsvc_core.jobs import JobSpec, LaneSpec
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.telemetry.explanations import Explainer
from msgsvc_webhooks.calls import CallsByLane, webhook_lanes
from msgsvc_webhooks.dashboard import pages
from msgsvc_webhooks.dashboard.catalogue import EventCatalogue
from msgsvc_webhooks.dashboard.verifying import Verification
from msgsvc_webhooks.delivering import Deliveries
from msgsvc_webhooks.erasure import erase
from msgsvc_webhooks.events import WEBHOOK_EVENTS
from msgsvc_webhooks.explanation import DeliveryExplainer
from msgsvc_webhooks.health import Health
from msgsvc_webhooks.jobs import WebhookJobs
from msgsvc_webhooks.metrics import AttemptMetrics
from msgsvc_webhooks.outcomes import OutcomeWriter
from msgsvc_webhooks.personal_data import PERSONAL_DATA
from msgsvc_webhooks.replays import Replays
from msgsvc_webhooks.routes import router
from msgsvc_webhooks.service import Webhooks
from msgsvc_webhooks.settings import WebhookSettings


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("webhooks", WebhookSettings)


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [
        SealedColumn(
            table="webhooks_secrets",
            column="encrypted",
            key=("project_id", "webhook_id", "secret_id"),
            bound_to=("webhook_id",),
            holds="{count} signing secret(s) of webhooks",
            if_lost="each project deletes its webhooks and creates them again, or rotates their secrets",
        )
    ]


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("webhooks", Path(__file__).parent / "migrations")


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return WEBHOOK_EVENTS


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "WebhooksPlugin":
    return WebhooksPlugin(context)


class WebhooksPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(WebhookSettings)
        metrics = AttemptMetrics(context.metrics.registry)
        self._db = context.db
        self._webhooks = Webhooks(
            clock=context.clock,
            settings=settings,
            secrets=context.secrets,
            jobs=context.jobs,
            events=context.events,
            guard=OutboundGuard(settings.allow_cidrs, settings.allow_http),
            header_prefix=context.config.header_prefix,
        )
        self._replays = Replays(
            clock=context.clock,
            events=context.events,
            jobs=context.jobs,
            webhooks=self._webhooks,
        )
        self._catalogue = EventCatalogue(events=context.events)
        self._verification = Verification(header_prefix=context.config.header_prefix)
        self._calls = CallsByLane(clock=context.clock, jobs=context.jobs)
        health = Health(
            clock=context.clock, events=context.events, settings=settings, metrics=metrics
        )
        deliveries = Deliveries(
            clock=context.clock,
            db=context.db,
            webhooks=self._webhooks,
            writer=OutcomeWriter(
                clock=context.clock,
                dialect=context.db.dialect,
                settings=settings,
                health=health,
                metrics=metrics,
            ),
            calls=self._calls,
        )
        self._explainer = DeliveryExplainer(clock=context.clock, projects=context.projects)
        self._jobs = WebhookJobs(
            clock=context.clock,
            webhooks=self._webhooks,
            deliveries=deliveries,
            replays=self._replays,
            partitioning=Partitioning(
                clock=context.clock,
                db=context.db,
                min_mib=context.config.database_partition_mib,
                metrics=context.metrics.partitions,
            ),
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {
            Webhooks: self._webhooks,
            Replays: self._replays,
            CallsByLane: self._calls,
            EventCatalogue: self._catalogue,
            Verification: self._verification,
        }

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_explainers(self) -> Sequence[Explainer]:
        explainer = self._explainer
        return [Explainer("whd", explainer.explain, explainer.follow_events)]

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return [webhook_lanes(self._calls)]

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self._jobs.specs()

    @hookimpl
    async def on_stop(self) -> None:
        await self._webhooks.close()

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self._webhooks.queue_deliveries(tx, events)

    @hookimpl
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        await erase(self._db, project_id, subscriber_id)
