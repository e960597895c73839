"""The plugin's door: what it adds to a service."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_scheduling.dashboard import pages
from msgsvc_scheduling.events import SCHEDULING_EVENTS
from msgsvc_scheduling.jobs import PURGE_JOB, RUN_JOB
from msgsvc_scheduling.recurring_routes import router as recurring_router
from msgsvc_scheduling.routes import router
from msgsvc_scheduling.running import Running
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
def register_services(service: Service) -> Mapping[type, Any]:
    return {Scheduling: Scheduling(service), Running: Running(service)}


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [RUN_JOB, PURGE_JOB]


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return [*router.endpoints, *recurring_router.endpoints]


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]
