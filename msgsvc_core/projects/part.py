"""The part of projects."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.parts import Built, Part
from msgsvc_core.projects.branding.pages import branding_routes
from msgsvc_core.projects.branding.routes import router as branding_router
from msgsvc_core.projects.routes import router
from msgsvc_core.projects.service import Projects


def _projects(*, clock: Clock, db: Database, settings: Settings) -> Built:
    projects = Projects(db, clock, logo_bytes=settings.limits.logo_bytes)
    return Built(provides=[projects, projects.branding])


def _pages(*, db: Database) -> Sequence[Any]:
    return branding_routes(db)


PART = Part(
    build=[_projects],
    endpoints=[*router.endpoints, *branding_router.endpoints],
    pages=[_pages],
)
