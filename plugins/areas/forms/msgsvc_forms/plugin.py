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
from msgsvc_core.files import StoredFile
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_forms import copies
from msgsvc_forms.dashboard import pages
from msgsvc_forms.dialogues import Dialogues
from msgsvc_forms.errors import FORM_ERRORS
from msgsvc_forms.events import FORM_EVENTS
from msgsvc_forms.inbound import FormBot
from msgsvc_forms.jobs import FORM_JOBS
from msgsvc_forms.routes import router
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.web.pages import WebForms


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("forms", FormsSettings)


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return FORM_ERRORS


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return FORM_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("forms", Path(__file__).parent / "migrations")


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_services(service: Service) -> Mapping[type, Any]:
    return {Forms: Forms(service, service.section(FormsSettings)), Dialogues: Dialogues(service)}


@hookimpl
def register_inbound(service: Service) -> Sequence[InboundRule]:
    return FormBot(service).rules()


@hookimpl
async def erase_subscriber(service: Service, project_id: str, subscriber_id: str) -> None:
    await copies.forget_person(service, project_id, subscriber_id)


@hookimpl
async def on_file_fetched(service: Service, tx: Tx, file: StoredFile) -> None:
    await service.get(Dialogues).file_fetched(tx, file)


@hookimpl
def register_pages(service: Service) -> Sequence[Any]:
    return WebForms(service).routes()


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return FORM_JOBS


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints
