"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.service import Service
from msgsvc_helpdesk import jobs, parts, removing
from msgsvc_helpdesk.dashboard import pages
from msgsvc_helpdesk.events import HELPDESK_EVENTS
from msgsvc_helpdesk.observing import on_events, on_file_fetched, on_member_changed
from msgsvc_helpdesk.routes import router
from msgsvc_helpdesk.service import Tickets
from msgsvc_helpdesk.settings import HelpdeskSettings

HERE = Path(__file__).parent

#: What it observes is a file of its own.
OBSERVING = (on_events, on_file_fetched, on_member_changed)


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("helpdesk", HelpdeskSettings)


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return HELPDESK_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("helpdesk", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_services(service: Service) -> Mapping[type, Any]:
    return parts.services_of(service)


@hookimpl
def register_jobs(service: Service) -> Sequence[JobSpec]:
    return parts.jobs_of(service)


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
def register_inbound(service: Service) -> Sequence[InboundRule]:
    return parts.rules_of(service)


@hookimpl
async def open_ticket(service: Service, tx: Tx, request: TicketRequest) -> str:
    return await service.get(Tickets).open_requested(tx, request)


@hookimpl
async def forget_source(
    service: Service, tx: Tx, project_id: str, source: str, source_id: str
) -> None:
    await removing.forget_source(service, tx, project_id, source, source_id)


@hookimpl
async def erase_subscriber(service: Service, project_id: str, subscriber_id: str) -> None:
    await jobs.erase(service, project_id, subscriber_id)
