"""Routes: the channels on which people are tried, in their order."""

import re
from collections.abc import Sequence
from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ApiError, Conflict
from msgsvc_core.kernel.i18n import explained
from msgsvc_core.routing.models import CreateRouteBody, RouteStep, UpdateRouteBody
from msgsvc_core.routing.service import Routes
from msgsvc_dashboard.people.declared import route_pages as pages
from msgsvc_dashboard.people.filters import older, read_filters
from msgsvc_dashboard.people.route_form import RouteForm

_STEP = re.compile(r"steps\[(\d+)\]\.?")


@pages.get("/routes", access="project:read", nav=Nav("Routes", "sort", group="sending", order=40))
async def routes(page: PageContext, all_routes: Routes, channels: Channels) -> Render:
    query, refused = read_filters(page, PageQuery)
    found = await all_routes.page(page.tx, page.project_id, query.after, query.fetch_limit)
    these, cursor = query.cut(found, lambda route: route.route_id)
    return Render(
        "routes.html",
        {
            "routes": [(each, _names(page, channels, each.steps)) for each in these],
            "refused": refused,
            "next": older(page, "/routes", cursor),
        },
    )


@pages.get("/routes/new", access="project:write")
async def new_route(page: PageContext, all_routes: Routes, channels: Channels) -> Render:
    """A new route, or a rejected one."""
    form = RouteForm()
    if "steps" in page.form:
        form = RouteForm.posted(page.form, all_routes.most_steps).without_empty()
    return _form(page, all_routes, channels, form)


@pages.post(
    "/routes/new", access="project:write", form_page=new_route, title=lambda _: _("Route created")
)
async def create_route(page: PageContext, all_routes: Routes) -> Redirect:
    form = RouteForm.posted(page.form, all_routes.most_steps).without_empty()
    body = validate(CreateRouteBody, form.to_body())
    route = await all_routes.create(page.tx, page.project_id, body)
    page.note(route=route.route_id)
    return Redirect(page.url(f"/routes/{route.route_id}"), notice=page._("The route is saved."))


@pages.post("/routes/steps", access="project:write", read_only=True)
async def change_steps(page: PageContext, all_routes: Routes, channels: Channels) -> Render:
    """The form after one of its buttons was pressed; nothing is stored yet."""
    form = RouteForm.posted(page.form, all_routes.most_steps)
    form.step(page.form.text("do"), all_routes.most_steps)
    return _form(page, all_routes, channels, form, page.form.text("route_id"))


@pages.get("/routes/{route_id}", access="project:read")
async def route(page: PageContext, all_routes: Routes, channels: Channels) -> Render:
    """A stored route, or rejected changes of it."""
    found = await all_routes.get(page.tx, page.project_id, page.params["route_id"])
    form = RouteForm.of(found)
    if "steps" in page.form:
        given = RouteForm.posted(page.form, all_routes.most_steps).without_empty()
        # The conflict has been shown; saving again overwrites.
        form = RouteForm(given.name, form.version, given.rows)
    return _form(page, all_routes, channels, form, found.route_id, found.name)


@pages.post(
    "/routes/{route_id}",
    access="project:write",
    form_page=route,
    title=lambda _: _("Route changed"),
)
async def change_route(page: PageContext, all_routes: Routes) -> Redirect:
    route_id = page.params["route_id"]
    form = RouteForm.posted(page.form, all_routes.most_steps).without_empty()
    found = await all_routes.get(page.tx, page.project_id, route_id)
    if form.version != str(found.version):
        raise Conflict(
            page._(
                "Someone else has changed the route since you opened it. Your changes are still "
                "here: saving now replaces theirs."
            )
        )
    body = validate(UpdateRouteBody, form.to_body())
    await all_routes.update(page.tx, page.project_id, route_id, body, version=found.version)
    page.note(route=route_id)
    return Redirect(page.url(f"/routes/{route_id}"), notice=page._("Saved."))


@pages.post(
    "/routes/{route_id}/delete",
    access="project:write",
    form_page=route,
    title=lambda _: _("Route deleted"),
)
async def delete_route(page: PageContext, all_routes: Routes) -> Redirect:
    route_id = page.params["route_id"]
    await all_routes.delete(page.tx, page.project_id, route_id)
    page.note(route=route_id)
    return Redirect(page.url("/routes"), notice=page._("The route is deleted."))


def _form(
    page: PageContext,
    all_routes: Routes,
    channels: Channels,
    form: RouteForm,
    route_id: str = "",
    title: str = "",
) -> Render:
    offered = channels.list_for_project(page.project_id)
    names = {each.name: channels.display_name(each.name, page.project_id) for each in offered}
    reported = {report for each in offered for report in each.capabilities.reports}
    chosen = {row["until"] for row in form.rows}
    values: dict[str, Any] = {
        "form": form,
        "route_id": route_id,
        "title": title,
        # Channels that are gone stay chosen.
        "channels": {row["channel"]: row["channel"] for row in form.rows if row["channel"]} | names,
        # What no channel reports is not offered.
        "untils": [
            until
            for until in ("sent", "delivered", "read", "answered")
            if until in {"sent", "answered"} | reported | chosen
        ],
        "most": all_routes.most_steps,
        "timezone": page.timezone.key,
        "problem": "" if page.error is None else _explained(page, page.error),
        "wrong": set() if page.error is None else _wrong(page.error),
    }
    return Render("route.html", values)


def _names(page: PageContext, channels: Channels, steps: Sequence[RouteStep]) -> list[str]:
    return [channels.display_name(step.channel, page.project_id) for step in steps]


def _wrong(error: ApiError) -> set[int]:
    """The numbers of the steps that a refusal is about."""
    found = (_STEP.search(finding.field) for finding in error.findings)
    return {int(each[1]) for each in found if each is not None}


def _explained(page: PageContext, error: ApiError) -> str:
    """A refusal in the words of the page."""
    labels = {
        "name": page._("Route name"),
        "steps": page._("Steps"),
        "channel": page._("Channel"),
        "until": page._("Done once the message is"),
        "within_seconds": page._("Wait before the next step, seconds"),
        "hours": page._("Hours"),
        "hours.from": page._("From"),
        "hours.to": page._("Until"),
        "hours.timezone": page._("Time zone"),
    }

    def label(field: str) -> str:
        step = _STEP.match(field)
        if step is None:
            return labels.get(field, field)
        rest = field[step.end() :]
        named = page._("Step {number}", number=int(step[1]) + 1)
        return f"{named}, {labels.get(rest, rest)}" if rest else named

    return explained(error.findings, page._, label)
