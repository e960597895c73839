"""The views above a list, as a page has them in its frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgsvc_core.dashboard import PageContext
from msgsvc_core.db import Tx
from msgsvc_dashboard.views.models import SavedView
from msgsvc_dashboard.views.service import SavedViews, canonical


@dataclass(frozen=True, slots=True)
class ViewBar:
    """`path` and `query` are of the list that is open, without the place in it."""

    path: str
    query: str
    views: Sequence[SavedView]

    @property
    def current(self) -> SavedView | None:
        """The view whose filters are set."""
        return next((view for view in self.views if view.query == self.query), None)


async def bar_of(views: SavedViews, tx: Tx, page: PageContext, address: str) -> ViewBar | None:
    """The bar of the page at `address`; None outside projects."""
    if page.project is None:
        return None
    path, query = _list_of(page, address)
    known = await views.of_list(tx, page.project_id, page.viewer.account_id, path)
    return ViewBar(path, canonical(query), known)


async def default_url(views: SavedViews, tx: Tx, page: PageContext, address: str) -> str | None:
    """Where the page at an address leads that has no filters; None if there is no default view."""
    path, query = _list_of(page, address)
    if page.project is None or query or page.fragment:
        return None
    found = await views.default_of(tx, page.project_id, page.viewer.account_id, path)
    return f"{page.url(path)}?{found}" if found else None


def _list_of(page: PageContext, address: str) -> tuple[str, str]:
    """The path in the project, and the query."""
    parts = urlsplit(address)
    return parts.path.removeprefix(page.url("")), parts.query
