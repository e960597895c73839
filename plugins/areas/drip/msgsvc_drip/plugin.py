"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import Event, EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_drip import triggers
from msgsvc_drip.dashboard import pages
from msgsvc_drip.events import DRIP_EVENTS
from msgsvc_drip.jobs import REMOVE_JOB, take_job
from msgsvc_drip.routes import router
from msgsvc_drip.service import Drips
from msgsvc_drip.settings import DripSettings
from msgsvc_drip.taking import StepTaker


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
def register_services(service: Service) -> Mapping[type, Any]:
    settings = service.section(DripSettings)
    return {Drips: Drips(service, settings), StepTaker: StepTaker(service, settings)}


@hookimpl
def register_jobs(service: Service) -> Sequence[JobSpec]:
    return [take_job(service.section(DripSettings)), REMOVE_JOB]


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
async def on_events(service: Service, tx: Tx, events: Sequence[Event]) -> None:
    await triggers.on_events(service, tx, events)


@hookimpl
async def on_tags_given(
    service: Service, tx: Tx, project_id: str, subscriber_id: str, tags: Sequence[str]
) -> None:
    await triggers.on_tags_given(service, tx, project_id, subscriber_id, tags)
