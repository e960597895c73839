"""Saving a view of a list, renaming it, opening the list with it, and deleting it."""

from msgsvc_core.dashboard import PageContext, Pages, Redirect
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_dashboard.views.models import SavedView
from msgsvc_dashboard.views.service import SavedViews

# It has no templates of its own: the frame shows views above each list.
pages = Pages("views", package="msgsvc_dashboard.people")


@pages.post("/views", access="customers:read", title=lambda _: _("View saved"))
async def save_view(page: PageContext, views: SavedViews) -> Redirect:
    form = page.form
    is_shared = form.checked("shared")
    _check(page, is_shared)
    view = await views.save(
        page.tx,
        page.project_id,
        page.viewer.account_id,
        path=form.text("path"),
        query=form.text("query"),
        name=form.text("name"),
        is_shared=is_shared,
    )
    page.note(view_id=view.view_id, shared=is_shared)
    return Redirect(address(page, view.path, view.query), page._("View saved."))


@pages.post("/views/change", access="customers:read", title=lambda _: _("View saved"))
async def change_view(page: PageContext, views: SavedViews) -> Redirect:
    view = await _view_of(page, views)
    if page.form.text("name") != view.name:
        _check(page, view.is_shared)
        await views.rename(page.tx, page.project_id, view, page.form.text("name"))
    await views.set_default(
        page.tx,
        page.project_id,
        page.viewer.account_id,
        view,
        is_default=page.form.checked("default"),
    )
    return Redirect(address(page, view.path, view.query), page._("View saved."))


@pages.post("/views/delete", access="customers:read", title=lambda _: _("View deleted"))
async def delete_view(page: PageContext, views: SavedViews) -> Redirect:
    view = await _view_of(page, views)
    _check(page, view.is_shared)
    await views.delete(page.tx, page.project_id, view)
    return Redirect(address(page, view.path, view.query), page._("View deleted."))


def address(page: PageContext, path: str, query: str) -> str:
    """The list at a path with these filters."""
    return f"{page.url(path)}?{query}"


async def _view_of(page: PageContext, views: SavedViews) -> SavedView:
    view_id = page.form.text("view_id")
    view = await views.find(page.tx, page.project_id, page.viewer.account_id, view_id)
    page.note(view_id=view.view_id)
    return view


def _check(page: PageContext, is_shared: bool) -> None:
    """What is the project's is changed by those who may change the project."""
    if is_shared and not page.may("project:write"):
        raise Forbidden("your role changes no views of the project")
