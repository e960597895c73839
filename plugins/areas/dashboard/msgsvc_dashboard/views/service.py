"""Rules of saved views: names, numbers, and who may change which."""

import re
from urllib.parse import parse_qsl, urlencode

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_dashboard.views import store
from msgsvc_dashboard.views.models import SavedView

#: Views of one list that somebody sees, their own and the project's: as many as fit above it.
MOST_VIEWS = 20

#: Characters of a name, which stands on a chip.
NAME_LENGTH = 40

#: Characters of the filters.
QUERY_LENGTH = 2000

#: Parts of an address that say where in a list a page is, and are no filters.
PLACES = frozenset({"cursor", "back", "at", "view"})

_PATH = re.compile(r"(/[\w-]{1,64}){1,6}", re.ASCII)


class SavedViews:
    """`may_share` of its methods is whether somebody may change what is the project's."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def of_list(self, tx: Tx, project_id: str, account_id: str, path: str) -> list[SavedView]:
        """Those of a list that somebody sees, the oldest first."""
        return await store.list_of(tx, project_id, account_id, path, MOST_VIEWS)

    async def default_of(self, tx: Tx, project_id: str, account_id: str, path: str) -> str | None:
        """The filters with which somebody opens a list; None if it is opened without."""
        return await store.find_default(tx, project_id, account_id, path)

    async def save(
        self,
        tx: Tx,
        project_id: str,
        account_id: str,
        *,
        path: str,
        query: str,
        name: str,
        is_shared: bool,
    ) -> SavedView:
        """Raises `ValidationFailed` for a name or filters that can't be kept, and `Conflict` beyond
        `MOST_VIEWS`."""
        kept = canonical(query)
        if _PATH.fullmatch(path) is None or not kept or len(kept) > QUERY_LENGTH:
            raise ValidationFailed("must be the filters of a list", field="query")
        await tx.lock(f"views of {project_id}")
        known = await self.of_list(tx, project_id, account_id, path)
        if len(known) >= MOST_VIEWS:
            raise Conflict("a list has at most {limit} views", limit=MOST_VIEWS)
        view = SavedView(new_id("vie"), path, kept, _name(name), account_id, is_shared)
        await store.insert(tx, project_id, view, self._clock.now_ms())
        return view

    async def find(self, tx: Tx, project_id: str, account_id: str, view_id: str) -> SavedView:
        """Raises `NotFound`, also for another person's own view."""
        view = await store.find(tx, project_id, account_id, view_id)
        if view is None:
            raise NotFound("there is no such view")
        return view

    async def rename(self, tx: Tx, project_id: str, view: SavedView, name: str) -> None:
        """Raises `ValidationFailed`."""
        await store.rename(tx, project_id, view.view_id, _name(name))

    async def delete(self, tx: Tx, project_id: str, view: SavedView) -> None:
        """Lists that open with it open without filters again."""
        await store.delete(tx, project_id, view.view_id)

    async def set_default(
        self, tx: Tx, project_id: str, account_id: str, view: SavedView, *, is_default: bool
    ) -> None:
        """Whether this person opens the list with the view."""
        if is_default:
            await store.set_default(tx, project_id, account_id, view.path, view.view_id)
        elif view.is_default:
            await store.clear_default(tx, project_id, account_id, view.path)


def canonical(query: str) -> str:
    """The filters of an address, in one order, without those that are not set.

    >>> canonical("status=blocked&cursor=x&channel=&at=51")
    'status=blocked'
    """
    pairs = [(name, text) for name, text in parse_qsl(query) if name not in PLACES]
    return urlencode(sorted(pairs))


def _name(name: str) -> str:
    text = " ".join(name.split())
    if not 0 < len(text) <= NAME_LENGTH or not text.isprintable():
        raise ValidationFailed("must have 1-{limit} characters", field="name", limit=NAME_LENGTH)
    return text
