"""/v1/routes."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.routing.models import (
    CreateRouteBody,
    RouteAnswer,
    RouteId,
    RouteList,
    UpdateRouteBody,
)
from msgsvc_core.routing.service import Routes

router = Router(
    area="routes",
    description="The channels on which to reach a person, in their order.",
    group="sending",
)


@router.get("/v1/routes", errors=(BadRequest,))
async def list_routes(ctx: Context, query: PageQuery, all_routes: Routes) -> RouteList:
    """Lists the project's routes, newest first."""
    routes = all_routes
    found = await routes.page(ctx.tx, ctx.project_id, query.begin("rte"), query.fetch_limit)
    page, following = query.cut(found, lambda route: route.route_id)
    return RouteList(data=[RouteAnswer.of(route) for route in page], next_cursor=following)


@router.post(
    "/v1/routes",
    status=201,
    errors=(Conflict,),
    shows_secrets=False,
    audited=lambda _: _("Route created"),
)
async def create_route(ctx: Context, body: CreateRouteBody, routes: Routes) -> RouteAnswer:
    """Creates a route: the channels on which a person is tried, in their order.

    A step is passed over if the person can't be reached by it at that moment: they are not on the channel,
    unsubscribed or blocked its bot, the bot is stopped, or it is outside the step's `hours`.
    """
    return RouteAnswer.of(await routes.create(ctx.tx, ctx.project_id, body))


@router.get("/v1/routes/{route_id}", errors=(NotFound,))
async def get_route(ctx: Context, route_id: RouteId, routes: Routes) -> RouteAnswer:
    """Shows one route."""
    return RouteAnswer.of(await routes.get(ctx.tx, ctx.project_id, route_id))


@router.patch(
    "/v1/routes/{route_id}", errors=(Conflict, NotFound), audited=lambda _: _("Route changed")
)
async def update_route(
    ctx: Context, route_id: RouteId, body: UpdateRouteBody, routes: Routes
) -> RouteAnswer:
    """Changes a route; omitted fields stay unchanged. Messages in progress keep its earlier steps."""
    return RouteAnswer.of(await routes.update(ctx.tx, ctx.project_id, route_id, body))


@router.delete(
    "/v1/routes/{route_id}", status=204, errors=(NotFound,), audited=lambda _: _("Route deleted")
)
async def delete_route(ctx: Context, route_id: RouteId, routes: Routes) -> None:
    """Deletes a route. Messages in progress still use it."""
    await routes.delete(ctx.tx, ctx.project_id, route_id)
