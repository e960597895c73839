"""Finds what a page's address is for."""

import re

from msgsvc_auth.hosted.models import Site
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import StaticLink
from msgsvc_auth.page_requests import PageRequest, read_token
from msgsvc_auth.requested.pages import RequestedPages
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.projects.service import Projects

_SLUG = re.compile(r"[a-z0-9-]{3,48}")


class Sites:
    """The pages of static links and of other plugins' requests."""

    def __init__(
        self, *, db: Database, projects: Projects, links: StaticLinks, requested: RequestedPages
    ) -> None:
        self._db = db
        self._projects = projects
        self._links = links
        self._requested = requested

    async def get(self, path: str) -> Site:
        """The page at `/login/<path>`.

        Raises `NotFound`, the same for a slug that nobody has, a request that is over or unknown, and those
        of a disabled project.
        """
        token = read_token(path)
        if token is not None or _SLUG.fullmatch(path):
            async with self._db.read() as tx:
                origin = await self._origin(tx, path, token)
                if origin is not None:
                    project = await self._projects.get(tx, origin.project_id)
                    if project.status == "active":
                        return Site(origin, project)
        raise no_page()

    async def _origin(
        self, tx: Tx, path: str, token: str | None
    ) -> StaticLink | PageRequest | None:
        if token is None:
            return await self._links.find_started(tx, path)
        return await self._requested.find(tx, token)


def no_page() -> NotFound:
    """Nobody can sign in at this address."""
    return NotFound("there is no sign-in page at this address")
