"""/v1/channels/{key}/shelf."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.channels.project_channels.models import NamedChannel
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.shelf.item_taker import ItemTaker
from msgsvc_core.channels.shelf.models import (
    ShelvedItemAnswer,
    ShelvedItemId,
    ShelvedItemList,
    TakenAnswer,
)
from msgsvc_core.channels.shelf.service import Shelf
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound, PlatformBusy

router = Router(area="channels", description="Bots of the project's own.", group="developers")

#: A download that no browser shows as a page: strangers sent it.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
}


@router.get("/v1/channels/{key}/shelf", errors=(BadRequest, NotFound))
async def list_shelf(
    ctx: Context, key: NamedChannel, query: PageQuery, own_channels: ProjectChannels, shelf: Shelf
) -> ShelvedItemList:
    """Lists what arrived on one of the project's own channels and could not be read or processed.

    Newest first. Items are deleted after `limits.shelf_days`, and the oldest once the shelf is full.
    """
    channel = await own_channels.get(ctx.tx, ctx.project_id, key)
    found = await shelf.page(ctx.tx, channel.channel_id, query.begin("shf"), query.fetch_limit)
    page, following = query.cut(found, lambda item: item.item_id)
    return ShelvedItemList(
        data=[ShelvedItemAnswer.of(item) for item in page], next_cursor=following
    )


@router.get(
    "/v1/channels/{key}/shelf/{item_id}/content",
    errors=(NotFound, Conflict),
    media_type="application/octet-stream",
    example="From: ann@example.com\r\nSubject: Hello\r\n\r\nHello",
)
async def get_shelved_content(
    ctx: Context,
    key: NamedChannel,
    item_id: ShelvedItemId,
    own_channels: ProjectChannels,
    shelf: Shelf,
) -> Response:
    """Returns an item as it arrived, or its beginning if it is larger than `limits.shelf_item_bytes`.

    An update that the channel could read, and on which the service failed, is returned as JSON.
    """
    channel = await own_channels.get(ctx.tx, ctx.project_id, key)
    item, raw = await shelf.read(ctx.tx, channel.channel_id, item_id)
    headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="{item.filename}"'}
    return Response(raw, media_type="application/octet-stream", headers=headers)


@router.post(
    "/v1/channels/{key}/shelf/{item_id}/take",
    errors=(NotFound, Conflict, PlatformBusy),
    holds_connection=False,
    audited=lambda _: _("Item set aside taken"),
)
async def take_shelved_item(
    ctx: Context,
    key: NamedChannel,
    item_id: ShelvedItemId,
    own_channels: ProjectChannels,
    taker: ItemTaker,
    db: Database,
) -> TakenAnswer:
    """Has an item read again, without the checks that may be left out, and processed like any other.

    Look at its content first: nothing proves who sent an email that was `unproven_sender`. An item that still
    can't be read or processed stays, with its new reason.
    """
    async with db.read() as tx:
        channel = await own_channels.get(tx, ctx.project_id, key)
    kept = await taker.take(channel.channel_id, item_id)
    if kept is None:
        return TakenAnswer(outcome="taken", item=None)
    return TakenAnswer(outcome="kept", item=ShelvedItemAnswer.of(kept))


@router.delete(
    "/v1/channels/{key}/shelf/{item_id}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Item set aside deleted"),
)
async def delete_shelved_item(
    ctx: Context,
    key: NamedChannel,
    item_id: ShelvedItemId,
    own_channels: ProjectChannels,
    shelf: Shelf,
) -> None:
    """Deletes an item from a channel's shelf."""
    channel = await own_channels.get(ctx.tx, ctx.project_id, key)
    await shelf.delete(ctx.tx, channel.channel_id, item_id)
