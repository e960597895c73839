"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_auth.dashboard import pages
from msgsvc_auth.errors import AUTH_ERRORS
from msgsvc_auth.events import AUTH_EVENTS
from msgsvc_auth.hosted.pages import HostedPages
from msgsvc_auth.inbound import SignInBot
from msgsvc_auth.jobs import PURGE_JOB
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.mini_app import mini_app_router
from msgsvc_auth.routes import router
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("auth", AuthSettings)


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return AUTH_ERRORS


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return AUTH_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("auth", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_services(service: Service) -> Mapping[type, Any]:
    metrics = SignInMetrics(service.metrics.registry)
    return {SignIn: SignIn(service, metrics), StaticLinks: StaticLinks(service)}


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [PURGE_JOB]


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return [*router.endpoints, *mini_app_router.endpoints]


@hookimpl
def register_pages(service: Service) -> Sequence[Any]:
    return HostedPages(service).routes()


@hookimpl
def register_inbound(service: Service) -> Sequence[InboundRule]:
    return SignInBot(service).rules()


@hookimpl
async def on_start(service: Service) -> None:
    service.get(SignIn).allow_waits()


@hookimpl
def on_stopping(service: Service) -> None:
    service.get(SignIn).end_waits()
