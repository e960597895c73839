"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard import developers, overview
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.overview import FOLD_JOB, Counts
from msgsvc_dashboard.people import areas as people
from msgsvc_dashboard.sign_in import SignInPages
from msgsvc_dashboard.team import areas as team

HERE = Path(__file__).parent


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("dashboard", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_services(service: Service) -> Mapping[type, Any]:
    return {Site: Site(service), Counts: Counts(service)}


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [FOLD_JOB]


@hookimpl
async def on_events(service: Service, tx: Tx, events: Sequence[Event]) -> None:
    await service.get(Counts).count(tx, events)


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [overview.pages, developers.pages, *people, *team]


@hookimpl
def register_pages(service: Service) -> Sequence[Any]:
    return [*SignInPages(service).routes(), *service.get(Site).routes()]
