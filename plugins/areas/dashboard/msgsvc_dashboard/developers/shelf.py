"""What channels could not read, and updates whose handler failed: of a project's own bots, and for the
operator of those that all share."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels import Channel
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.shelf import ItemTaker, Shelf, ShelvedItem
from msgsvc_core.dashboard import Download, Nav, PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import NotFound
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.developers.area import pages

#: Items of one page.
MOST = 50

#: Characters of an item that its page shows.
SHOWN = 4000


@dataclass(frozen=True, slots=True)
class Place:
    """A channel whose shelf is looked at: its key, its name, and the address of its shelf."""

    key: str
    name: str
    here: str
    channel: Channel | None


# ---- a project's own bots ---------------------------------------------------------------------------


@pages.get("/channels/{name}/shelf", access="project:write")
async def shelf(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels, shelves: Shelf
) -> Render:
    return await _list(page, await _own(page, own_channels, all_channels), shelves)


@pages.get("/channels/{name}/shelf/{item_id}", access="project:write")
async def shelved_item(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels, shelves: Shelf
) -> Render:
    return await _item(page, await _own(page, own_channels, all_channels), shelves)


@pages.get("/channels/{name}/shelf/{item_id}/content", access="project:write")
async def shelved_content(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels, shelves: Shelf
) -> Download:
    return await _download(page, await _own(page, own_channels, all_channels), shelves)


@pages.post(
    "/channels/{name}/shelf/{item_id}/take",
    access="project:write",
    form_page=shelved_item,
    holds_connection=False,
    title=lambda _: _("Item set aside taken"),
)
async def take_shelved_item(
    page: PageContext,
    own_channels: ProjectChannels,
    all_channels: Channels,
    taker: ItemTaker,
    db: Database,
    audit: Audit,
) -> Redirect:
    async with db.read() as tx:
        found = await own_channels.get(tx, page.project_id, page.params["name"])
    place = _place_of(page, found.channel_id, all_channels)
    return await _take(page, place, taker, db, audit, "developers.take_shelved_item")


@pages.post(
    "/channels/{name}/shelf/{item_id}/delete",
    access="project:write",
    form_page=shelved_item,
    title=lambda _: _("Item set aside deleted"),
)
async def delete_shelved_item(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels, shelves: Shelf
) -> Redirect:
    return await _delete(page, await _own(page, own_channels, all_channels), shelves)


# ---- shared channels --------------------------------------------------------------------------------


@pages.get(
    "/shelf",
    access="installation:operate",
    nav=Nav("Set aside", icon="inbox", group="project", order=210),
)
async def shared_shelves(page: PageContext, all_channels: Channels, shelves: Shelf) -> Render:
    counts = await shelves.count(page.tx, [each.key for each in all_channels.shared])
    found = [(each, counts.get(each.key, 0)) for each in all_channels.shared]
    return Render("shelves.html", {"shelves": found})


@pages.get("/shelf/{channel}", access="installation:operate")
async def shared_shelf(page: PageContext, all_channels: Channels, shelves: Shelf) -> Render:
    return await _list(page, _shared(page, all_channels), shelves)


@pages.get("/shelf/{channel}/{item_id}", access="installation:operate")
async def shared_item(page: PageContext, all_channels: Channels, shelves: Shelf) -> Render:
    return await _item(page, _shared(page, all_channels), shelves)


@pages.get("/shelf/{channel}/{item_id}/content", access="installation:operate")
async def shared_content(page: PageContext, all_channels: Channels, shelves: Shelf) -> Download:
    return await _download(page, _shared(page, all_channels), shelves)


@pages.post(
    "/shelf/{channel}/{item_id}/take",
    access="installation:operate",
    form_page=shared_item,
    holds_connection=False,
    title=lambda _: _("Item set aside taken"),
)
async def take_shared_item(
    page: PageContext, all_channels: Channels, taker: ItemTaker, db: Database, audit: Audit
) -> Redirect:
    place = _shared(page, all_channels)
    return await _take(page, place, taker, db, audit, "developers.take_shared_item")


@pages.post(
    "/shelf/{channel}/{item_id}/delete",
    access="installation:operate",
    form_page=shared_item,
    title=lambda _: _("Item set aside deleted"),
)
async def delete_shared_item(page: PageContext, all_channels: Channels, shelves: Shelf) -> Redirect:
    return await _delete(page, _shared(page, all_channels), shelves)


# ---- what both do -----------------------------------------------------------------------------------


async def _own(page: PageContext, own_channels: ProjectChannels, all_channels: Channels) -> Place:
    found = await own_channels.get(page.tx, page.project_id, page.params["name"])
    return _place_of(page, found.channel_id, all_channels)


def _place_of(page: PageContext, key: str, all_channels: Channels) -> Place:
    name = page.params["name"]
    return Place(key, name, page.url(f"/channels/{name}/shelf"), all_channels.get(key))


def _shared(page: PageContext, all_channels: Channels) -> Place:
    key = page.params["channel"]
    found = next((each for each in all_channels.shared if each.key == key), None)
    if found is None:
        raise NotFound(page._("There is no shared channel of this name."))
    return Place(key, found.name, page.url(f"/operator/shelf/{key}"), found)


async def _list(page: PageContext, place: Place, shelves: Shelf) -> Render:
    cursor = page.query.get("cursor") or None
    query = validate(PageQuery, {"limit": MOST, "cursor": cursor})
    found = await shelves.page(page.tx, place.key, query.after, query.fetch_limit)
    items, following = query.cut(found, lambda item: item.item_id)
    values = {
        "place": place,
        "items": items,
        "older": f"{place.here}?cursor={following}" if following else "",
        "first": place.here if cursor else "",
        "reasons": reasons(page),
        "kinds": kinds(page),
    }
    return Render("shelf.html", values)


async def _item(page: PageContext, place: Place, shelves: Shelf) -> Render:
    item, raw = await shelves.read(page.tx, place.key, page.params["item_id"])
    values = {
        "place": place,
        "item": item,
        "text": text_of(raw),
        "is_cut": len(raw) > SHOWN,
        "may_take": item.can_be_taken(place.channel),
        "reasons": reasons(page),
        "kinds": kinds(page),
    }
    return Render("shelf_item.html", values)


async def _download(page: PageContext, place: Place, shelves: Shelf) -> Download:
    item, raw = await shelves.read(page.tx, place.key, page.params["item_id"])
    # No browser shows it as a page: a stranger sent it.
    return Download(_once(raw), item.filename, "application/octet-stream")


async def _take(
    page: PageContext, place: Place, taker: ItemTaker, db: Database, audit: Audit, action: str
) -> Redirect:
    item_id = page.params["item_id"]
    left = await taker.take(place.key, item_id)
    async with db.transaction() as tx:
        await audit.write(
            tx,
            action,
            project_id=page.project.project_id if page.project else None,
            account_id=page.viewer.account_id,
            target=f"{place.name} {item_id}",
            detail={"item_id": item_id},
            ip=page.ip,
        )
    if left is None:
        return Redirect(place.here, page._("Taken: it was processed like any other."))
    if left.update_kind is not None:
        said = page._("It could not be processed: {why}", why=_why(page, left))
    else:
        said = page._("It still can't be read: {why}", why=_why(page, left))
    return Redirect(f"{place.here}/{item_id}", said)


async def _delete(page: PageContext, place: Place, shelves: Shelf) -> Redirect:
    item_id = page.params["item_id"]
    page.note(item_id=item_id)
    await shelves.delete(page.tx, place.key, item_id)
    return Redirect(place.here, page._("Removed."))


async def _once(raw: bytes) -> AsyncIterator[bytes]:
    yield raw


def _why(page: PageContext, item: ShelvedItem) -> str:
    return reasons(page)[item.reason]


def text_of(raw: bytes) -> str:
    """The beginning of an item, as far as it is text: without characters that would show as others."""
    text = raw[: 4 * SHOWN].decode("utf-8", "replace").replace("\r\n", "\n")[:SHOWN]
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def kinds(page: PageContext) -> dict[str, str]:
    _ = page._
    return {"email": _("Email"), "update": _("Update"), "report": _("Delivery report")}


def reasons(page: PageContext) -> dict[str, str]:
    """The reasons of `UnreadableReason` in words."""
    _ = page._
    return {
        "malformed": _("It does not have the messenger's format."),
        "unknown_kind": _("It is of a kind that the channel does not know."),
        "too_large": _("It is too large."),
        "timed_out": _("Reading it took too long."),
        "undecryptable": _("It is encrypted, and no key opens it."),
        "no_sender": _("It does not name one sender."),
        "unproven_sender": _("Nothing proves who sent it."),
        "automatic": _("A program or a mailing list seems to have sent it."),
        "empty": _("It is empty."),
        "unmatched": _("It is about no message of this channel."),
        "fault": _("The service failed on it."),
        "nothing_in_it": _("There is nothing in it for the channel."),
    }
