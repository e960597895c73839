"""Hook implementations: the plugin's declarations, and its objects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.planned import PlannedMessages
from msgsvc_scheduling import store
from msgsvc_scheduling.dashboard import pages
from msgsvc_scheduling.events import SCHEDULING_EVENTS
from msgsvc_scheduling.jobs import ScheduleJobs
from msgsvc_scheduling.personal_data import PERSONAL_DATA
from msgsvc_scheduling.recurring_routes import router as recurring_router
from msgsvc_scheduling.routes import router
from msgsvc_scheduling.running import Running
from msgsvc_scheduling.sending import Sending
from msgsvc_scheduling.service import Scheduling
from msgsvc_scheduling.settings import SchedulingSettings

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("scheduling", SchedulingSettings)


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return SCHEDULING_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("scheduling", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


class SchedulingPlugin:
    """The objects of the plugin, and its hooks."""

    def __init__(self, context: PluginContext, settings: SchedulingSettings) -> None:
        sending = Sending(
            billing=context.billing, messages=context.messages, mailings=context.mailings
        )
        self.scheduling = Scheduling(
            clock=context.clock,
            subscribers=context.subscribers,
            sending=sending,
            settings=settings,
        )
        self.running = Running(
            clock=context.clock,
            db=context.db,
            events=context.events,
            projects=context.projects,
            subscribers=context.subscribers,
            sending=sending,
            settings=settings,
        )
        self.jobs = ScheduleJobs(clock=context.clock, running=self.running, settings=settings)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Scheduling: self.scheduling, Running: self.running, ScheduleJobs: self.jobs}

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self.jobs.specs

    @hookimpl
    def register_planned_messages(self) -> Sequence[PlannedMessages]:
        return [
            PlannedMessages(
                store.PLANNED,
                "scheduled and recurring messages",
                store.count_waiting,
                self.running.withdraw,
            )
        ]

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return [*router.endpoints, *recurring_router.endpoints]

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> SchedulingPlugin:
    return SchedulingPlugin(context, context.settings(SchedulingSettings))
