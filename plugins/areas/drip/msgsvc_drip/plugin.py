"""Hook implementations: the plugin's declarations, and its objects."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import Event, EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.planned import PlannedMessages
from msgsvc_drip import due_store
from msgsvc_drip.checks import DefinitionChecks
from msgsvc_drip.contents import Contents
from msgsvc_drip.dashboard import pages
from msgsvc_drip.events import DRIP_EVENTS
from msgsvc_drip.jobs import DripJobs
from msgsvc_drip.personal_data import PERSONAL_DATA
from msgsvc_drip.planning import Planner
from msgsvc_drip.receivers import Receivers
from msgsvc_drip.routes import router
from msgsvc_drip.service import Drips
from msgsvc_drip.settings import DripSettings
from msgsvc_drip.step_runner import StepRunner
from msgsvc_drip.triggers import Triggers


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("drip", DripSettings)


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return DRIP_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("drip", Path(__file__).parent / "migrations")


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


class DripPlugin:
    """The objects of the plugin, and its hooks."""

    def __init__(self, context: PluginContext, settings: DripSettings) -> None:
        checks = DefinitionChecks(
            permissions=context.permissions,
            templates=context.templates,
            channels=context.channels,
            messages=context.messages,
            routes=context.routes,
            settings=context.config,
        )
        self.drips = Drips(
            clock=context.clock,
            jobs=context.jobs,
            subscribers=context.subscribers,
            checks=checks,
            settings=settings,
        )
        contents = partial(
            Contents,
            db=context.db,
            templates=context.templates,
            permissions=context.permissions,
            channels=context.channels,
            messages=context.messages,
            preferences=context.subscribers.preferences,
            default_lang=context.config.default_lang,
            text_length=context.config.limits.text_length,
        )
        planner = Planner(
            billing=context.billing,
            messages=context.messages,
            contents=contents,
            receivers=Receivers(
                db=context.db, routes=context.routes, subscribers=context.subscribers
            ),
            late_minutes=settings.late_minutes,
        )
        self.runner = StepRunner(
            clock=context.clock,
            db=context.db,
            events=context.events,
            projects=context.projects,
            subscribers=context.subscribers,
            planner=planner,
            batch=settings.batch,
        )
        self.triggers = Triggers(clock=context.clock, subscribers=context.subscribers)
        self.jobs = DripJobs(drips=self.drips, runner=self.runner, look_s=settings.look_s)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Drips: self.drips, StepRunner: self.runner}

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self.jobs.specs

    @hookimpl
    def register_planned_messages(self) -> Sequence[PlannedMessages]:
        return [
            PlannedMessages(
                due_store.PLANNED,
                "steps of drip campaigns",
                due_store.count_waiting,
                self.runner.withdraw,
            )
        ]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self.triggers.on_events(tx, events)

    @hookimpl
    async def on_tags_added(
        self, tx: Tx, project_id: str, subscriber_id: str, tags: Sequence[str]
    ) -> None:
        await self.triggers.on_tags_added(tx, project_id, subscriber_id, tags)


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> DripPlugin:
    return DripPlugin(context, context.settings(DripSettings))
