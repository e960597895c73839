"""Static links: permanent sign-in links with a slug."""

from msgsvc_auth import store
from msgsvc_auth.callbacks import check_callback_url
from msgsvc_auth.guarantees import Guarantees
from msgsvc_auth.models import (
    CreateStaticLinkBody,
    StaticLink,
    StaticLinkQuery,
    UpdateStaticLinkBody,
)
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id


class StaticLinks:
    """Creates, changes and finds a project's links."""

    def __init__(self, *, clock: Clock, channels: Channels, allow_http: bool) -> None:
        self._clock = clock
        self._guarantees = Guarantees(channels)
        self._allow_http = allow_http

    async def create(self, tx: Tx, project_id: str, body: CreateStaticLinkBody) -> StaticLink:
        """Raises `InvalidUrl`, `Conflict` for a slug that any project has, and `ValidationFailed` where
        people can answer none of the project's bots, or none proves what is asked for."""
        self._guarantees.check(project_id, None, body.must_prove)
        check_callback_url(body.callback_url, allow_http=self._allow_http)
        link = StaticLink(
            project_id=project_id,
            link_id=new_id("lnk"),
            slug=body.slug,
            name=body.name,
            callback_url=body.callback_url,
            number_matching=body.number_matching,
            must_prove=tuple(body.must_prove),
            created_at_ms=self._clock.now_ms(),
        )
        if not await store.insert_link(tx, link):
            raise Conflict(
                "{slug!r} is taken, by this project or another", field="slug", slug=body.slug
            )
        return link

    async def get(self, tx: Tx, project_id: str, slug: str) -> StaticLink:
        """Raises `NotFound`, for another project's link as well."""
        return _found(await store.find_link(tx, project_id, slug), slug)

    async def find_started(self, tx: Tx, slug: str) -> StaticLink | None:
        """The link of a start payload, of any project."""
        return await store.find_link_of_any_project(tx, slug)

    async def page(self, tx: Tx, project_id: str, query: StaticLinkQuery) -> list[StaticLink]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_links(tx, project_id, query.begin("lnk"), query.fetch_limit)

    async def change(
        self, tx: Tx, project_id: str, slug: str, body: UpdateStaticLinkBody
    ) -> StaticLink:
        """Raises `NotFound`, `InvalidUrl`, and `ValidationFailed` where no bot of the project proves what is
        asked for. The slug stays: links to it are out in the world."""
        if body.must_prove:
            self._guarantees.check(project_id, None, body.must_prove)
        if body.callback_url is not None:
            check_callback_url(body.callback_url, allow_http=self._allow_http)
        changed = await store.update_link(
            tx,
            project_id,
            slug,
            name=body.name,
            callback_url=body.callback_url,
            number_matching=body.number_matching,
            must_prove=body.must_prove,
        )
        return _found(changed, slug)

    async def delete(self, tx: Tx, project_id: str, slug: str) -> None:
        """Raises `NotFound`. Sign-ins under way are not affected."""
        if not await store.delete_link(tx, project_id, slug):
            raise _missing(slug)


def _found(link: StaticLink | None, slug: str) -> StaticLink:
    if link is None:
        raise _missing(slug)
    return link


def _missing(slug: str) -> NotFound:
    return NotFound("there is no static link {slug!r}", slug=slug)
