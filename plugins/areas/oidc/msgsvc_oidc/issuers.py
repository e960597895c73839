"""Issuers: each project is one, at `<base_url>/oidc/<project_id>`."""

from urllib.parse import urlsplit

from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.ids import is_id
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_oidc.brief_cache import BriefCache


class Issuers:
    """The URLs of issuers, and their projects."""

    def __init__(self, *, clock: Clock, db: Database, projects: Projects, base_url: str) -> None:
        self._db = db
        self._projects = projects
        self._base_url = base_url.rstrip("/")
        self._known = BriefCache(clock, self._find)

    @property
    def is_secure(self) -> bool:
        """Whether the service is public over https."""
        return self._base_url.startswith("https:")

    @property
    def path(self) -> str:
        """What stands before `/oidc/...` in the service's own URLs, for cookies; often empty."""
        return urlsplit(self._base_url).path

    def url(self, project_id: str) -> str:
        """The issuer of a project (OpenID Connect Discovery 1.0, section 3)."""
        return f"{self._base_url}/oidc/{project_id}"

    async def project(self, project_id: str) -> Project:
        """Raises `NotFound`, the same for a project that does not exist and a disabled one."""
        project = await self._known.get(project_id) if is_id(project_id, "prj") else None
        if project is None:
            raise NotFound("there is no issuer at this address")
        return project

    async def _find(self, project_id: str) -> Project | None:
        async with self._db.read() as tx:
            try:
                project = await self._projects.get(tx, project_id)
            except NotFound:
                return None
        return project if project.status == "active" else None
