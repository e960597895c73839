"""/v1/channels."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.channels.project_channels.models import (
    BotAnswer,
    ChannelAnswer,
    ChannelCheckAnswer,
    ChannelList,
    CreateChannelBody,
    NamedChannel,
    UpdateChannelBody,
)
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound, PlatformBusy

router = Router(area="channels", description="Bots of the project's own.", group="developers")

#: Seconds for `retry_after` when the platform did not respond.
BUSY_S = 5


@router.get("/v1/channels", errors=(BadRequest,))
async def list_channels(
    ctx: Context, query: PageQuery, own_channels: ProjectChannels
) -> ChannelList:
    """Lists the project's own channels, newest first. Those it can use are in `GET /v1/project`."""
    found = await own_channels.page(ctx.tx, ctx.project_id, query.begin("chn"), query.fetch_limit)
    page, following = query.cut(found, lambda channel: channel.channel_id)
    return ChannelList(data=await own_channels.answers(ctx.tx, page), next_cursor=following)


@router.post("/v1/channels", status=201, errors=(Conflict,), audited=lambda _: _("Channel created"))
async def create_channel(
    ctx: Context, body: CreateChannelBody, own_channels: ProjectChannels
) -> ChannelAnswer:
    """Adds the project's own bot. With the name of a shared channel it replaces that channel.

    `settings` are those of `plugin`; its secrets are kept encrypted and never shown again.
    """
    channel = await own_channels.create(ctx.tx, ctx.project_id, body)
    [answer] = await own_channels.answers(ctx.tx, [channel])
    return answer


@router.get("/v1/channels/{key}", errors=(NotFound,))
async def get_channel(
    ctx: Context, key: NamedChannel, own_channels: ProjectChannels
) -> ChannelAnswer:
    """Shows one of the project's own channels, without its secrets."""
    channel = await own_channels.get(ctx.tx, ctx.project_id, key)
    [answer] = await own_channels.answers(ctx.tx, [channel])
    return answer


@router.patch("/v1/channels/{key}", errors=(NotFound,), audited=lambda _: _("Channel changed"))
async def update_channel(
    ctx: Context, key: NamedChannel, body: UpdateChannelBody, own_channels: ProjectChannels
) -> ChannelAnswer:
    """Changes settings of one of the project's own channels; omitted fields stay unchanged.

    Calls in progress finish with the old settings; later calls use the new ones.
    """
    channel = await own_channels.update(ctx.tx, ctx.project_id, key, body)
    [answer] = await own_channels.answers(ctx.tx, [channel])
    return answer


@router.delete(
    "/v1/channels/{key}", status=204, errors=(NotFound,), audited=lambda _: _("Channel deleted")
)
async def delete_channel(ctx: Context, key: NamedChannel, own_channels: ProjectChannels) -> None:
    """Deletes one of the project's own channels and its secrets; queued messages are skipped."""
    await own_channels.delete(ctx.tx, ctx.project_id, key)


@router.post("/v1/channels/{key}/check", errors=(NotFound, PlatformBusy), holds_connection=False)
async def check_channel(
    ctx: Context, key: NamedChannel, own_channels: ProjectChannels
) -> ChannelCheckAnswer:
    """Checks the bot with the messenger's platform.

    `ok` is false if the platform rejects the bot. If the platform does not respond, the state of the
    bot is unknown, and the error is `platform_busy`. `reception` reports whether updates are received.
    """
    health, reception = await own_channels.check(ctx.project_id, key)
    if health.unreachable:
        raise PlatformBusy(
            "the messenger's platform gave no answer: {detail}",
            detail=health.detail,
            retry_after_s=BUSY_S,
        )
    profile = health.profile
    return ChannelCheckAnswer(
        ok=health.ok,
        detail=health.detail,
        bot=profile and BotAnswer(name=profile.name, username=profile.username),
        reception=reception,
    )
