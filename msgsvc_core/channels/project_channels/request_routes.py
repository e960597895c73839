"""/v1/channel-requests."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.channels.project_channels.models import (
    ChannelRequestAnswer,
    ChannelRequestId,
    ChannelRequestList,
    CreateChannelRequestBody,
)
from msgsvc_core.channels.project_channels.requests import ChannelRequests
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.projects.service import Projects

router = Router(area="channels")


@router.get("/v1/channel-requests", errors=(BadRequest,))
async def list_channel_requests(
    ctx: Context, query: PageQuery, channel_requests: ChannelRequests, projects: Projects
) -> ChannelRequestList:
    """Lists the project's requests for bots, newest first, until a day after they expire."""
    found = await channel_requests.page(
        ctx.tx, ctx.project_id, query.begin("chr"), query.fetch_limit
    )
    page, following = query.cut(found, lambda request: request.request_id)
    project = await projects.get(ctx.tx, ctx.project_id)
    return ChannelRequestList(
        data=[channel_requests.answer(request, project.name) for request in page],
        next_cursor=following,
    )


@router.post(
    "/v1/channel-requests",
    status=201,
    errors=(Conflict,),
    audited=lambda _: _("Bot requested from a messenger"),
)
async def create_channel_request(
    ctx: Context,
    body: CreateChannelRequestBody,
    channel_requests: ChannelRequests,
    projects: Projects,
) -> ChannelRequestAnswer:
    """Asks for a bot that a person makes on the messenger in one tap, without a token to paste.

    The person who opens `link` within an hour and confirms creates the bot, named like the project. It
    becomes the channel `name` a moment later; `status` shows it. An earlier request of that name is
    cancelled.
    """
    request = await channel_requests.create(ctx.tx, ctx.project_id, body.name, body.plugin)
    project = await projects.get(ctx.tx, ctx.project_id)
    return channel_requests.answer(request, project.name)


@router.get("/v1/channel-requests/{channel_request_id}", errors=(NotFound,))
async def get_channel_request(
    ctx: Context,
    channel_request_id: ChannelRequestId,
    channel_requests: ChannelRequests,
    projects: Projects,
) -> ChannelRequestAnswer:
    """Shows a request for a bot, and whether the bot is made and connected."""
    request = await channel_requests.get(ctx.tx, ctx.project_id, channel_request_id)
    project = await projects.get(ctx.tx, ctx.project_id)
    return channel_requests.answer(request, project.name)


@router.post(
    "/v1/channel-requests/{channel_request_id}/cancel",
    shows_secrets=False,
    errors=(Conflict, NotFound),
    audited=lambda _: _("Request for a bot cancelled"),
)
async def cancel_channel_request(
    ctx: Context,
    channel_request_id: ChannelRequestId,
    channel_requests: ChannelRequests,
    projects: Projects,
) -> ChannelRequestAnswer:
    """Cancels a request that waits for its bot: a bot made on its link is not connected.

    Refused with `conflict` once the bot is made, and for a request that has ended.
    """
    request = await channel_requests.cancel(ctx.tx, ctx.project_id, channel_request_id)
    project = await projects.get(ctx.tx, ctx.project_id)
    return channel_requests.answer(request, project.name)
