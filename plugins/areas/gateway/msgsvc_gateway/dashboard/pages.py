"""Pages: gateways, one gateway with what was sent through it, and how its sender is set up."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_gateway.dashboard.labels import TONES, not_sent, paths, senders, statuses
from msgsvc_gateway.models import (
    MAX_CHANNELS,
    SIGNING,
    CreateGatewayBody,
    Gateway,
    UpdateGatewayBody,
)
from msgsvc_gateway.service import Gateways

pages = Pages("gateways", package="msgsvc_gateway.dashboard")


@pages.get(
    "/gateways",
    access="project:read",
    nav=Nav("Gateways", icon="server", group="sign_in", order=40),
)
async def gateways(page: PageContext, all_gateways: Gateways, channels: Channels) -> Render:
    query = validate(PageQuery, _paging(page))
    found = await all_gateways.page(page.tx, page.project_id, query)
    shown, following = query.cut(found, lambda gateway: gateway.gateway_id)
    latest = await all_gateways.last_messages(
        page.tx, page.project_id, [each.gateway_id for each in shown]
    )
    values = {
        "gateways": [
            (each, _names(page, channels, each.channels), latest.get(each.gateway_id))
            for each in shown
        ],
        "most": all_gateways.most,
        "senders": senders(page._),
        "statuses": statuses(page._),
        "tones": TONES,
        "older": following and page.url("/gateways", cursor=following),
    }
    return Render("gateways.html", values)


@pages.get("/gateways/new", access="project:write")
async def new_gateway(page: PageContext, channels: Channels) -> Render:
    return Render("edit.html", _form(page, channels, None))


@pages.post(
    "/gateways/new",
    access="project:write",
    form_page=new_gateway,
    title=lambda _: _("Gateway created"),
)
async def create_gateway(page: PageContext, all_gateways: Gateways) -> Render:
    given = {**_typed(page), "sender": page.form.text("sender")}
    gateway, url = await all_gateways.create(
        page.tx, page.project_id, validate(CreateGatewayBody, given)
    )
    page.note(gateway_id=gateway.gateway_id)
    return Render("url.html", {"gateway": gateway, "url": url, "old_until_ms": None})


@pages.get("/gateways/{gateway_id}", access="project:read")
async def gateway(
    page: PageContext, all_gateways: Gateways, channels: Channels, subscribers: Subscribers
) -> Render:
    found = await _gateway(page, all_gateways)
    query = validate(PageQuery, _paging(page))
    sent = await all_gateways.messages(page.tx, page.project_id, found.gateway_id, query)
    shown, following = query.cut(sent, lambda message: message.message_id)
    people = await subscribers.get_many(
        page.tx, [(page.project_id, each.subscriber_id) for each in shown if each.subscriber_id]
    )
    here = f"/gateways/{found.gateway_id}"
    old_until_ms = found.old_secret_until_ms
    values = {
        "gateway": found,
        "old_works": old_until_ms is not None and old_until_ms > page.clock.now_ms(),
        "sender": senders(page._)[found.sender],
        "signs": found.sender in SIGNING,
        "paths": [(label, found.paths.get(name)) for name, label in paths(page._)],
        "channels": _names(page, channels, found.channels),
        "url": f"{all_gateways.address(found)}/…",
        "messages": [
            (
                each,
                channels.display_name(each.channel, page.project_id),
                people.get((page.project_id, each.subscriber_id or "")),
                not_sent(page._, each.reason) if each.reason else "",
            )
            for each in shown
        ],
        "statuses": statuses(page._),
        "tones": TONES,
        "older": following and page.url(here, cursor=following),
        "first": "cursor" in page.query and page.url(here),
    }
    return Render("gateway.html", values)


@pages.get("/gateways/{gateway_id}/edit", access="project:write")
async def edit_gateway(page: PageContext, all_gateways: Gateways, channels: Channels) -> Render:
    return Render("edit.html", _form(page, channels, await _gateway(page, all_gateways)))


@pages.post(
    "/gateways/{gateway_id}/edit",
    access="project:write",
    form_page=edit_gateway,
    title=lambda _: _("Gateway changed"),
)
async def update_gateway(page: PageContext, all_gateways: Gateways) -> Redirect:
    found = await _gateway(page, all_gateways)
    key = page.form.text("signing_key").strip()
    given = _typed(page)
    if page.form.checked("unsigned"):
        given["signing_key"] = None
    elif key:
        given["signing_key"] = key
    if found.sender == "generic":
        typed = {name: page.form.text(f"path_{name}").strip() for name, _ in paths(page._)}
        given["paths"] = {name: path for name, path in typed.items() if path}
    body = validate(UpdateGatewayBody, given)
    await all_gateways.update(page.tx, page.project_id, found.gateway_id, body)
    return Redirect(page.url(f"/gateways/{found.gateway_id}"), page._("Saved."))


@pages.post(
    "/gateways/{gateway_id}/url", access="project:write", title=lambda _: _("Gateway URL replaced")
)
async def rotate_gateway_url(page: PageContext, all_gateways: Gateways) -> Render:
    found, url, until_ms = await all_gateways.rotate_url(
        page.tx, page.project_id, page.params["gateway_id"]
    )
    return Render("url.html", {"gateway": found, "url": url, "old_until_ms": until_ms})


@pages.post(
    "/gateways/{gateway_id}/delete", access="project:write", title=lambda _: _("Gateway deleted")
)
async def delete_gateway(page: PageContext, all_gateways: Gateways) -> Redirect:
    await all_gateways.delete(page.tx, page.project_id, page.params["gateway_id"])
    return Redirect(page.url("/gateways"), page._("Deleted."))


async def _gateway(page: PageContext, all_gateways: Gateways) -> Gateway:
    return await all_gateways.get(page.tx, page.project_id, page.params["gateway_id"])


def _paging(page: PageContext) -> dict[str, Any]:
    return {"limit": 50, "cursor": page.query.get("cursor") or None}


def _names(page: PageContext, channels: Channels, names: Sequence[str]) -> list[str]:
    return [channels.display_name(name, page.project_id) for name in names]


def _form(page: PageContext, channels: Channels, found: Gateway | None) -> dict[str, Any]:
    """One choice for each channel that may follow the one before; those that are gone stay chosen."""
    offered = [each.name for each in channels.list_for_project(page.project_id)]
    chosen = list(found.channels) if found is not None else offered[:1]
    known = list(dict.fromkeys([*chosen, *offered]))
    return {
        "gateway": found,
        "signs": found is not None and found.sender in SIGNING,
        "paths": paths(page._),
        "senders": list(senders(page._).items()),
        "chosen": chosen,
        "places": range(min(len(known), MAX_CHANNELS)),
        "offered": [(name, channels.display_name(name, page.project_id)) for name in known],
    }


def _typed(page: PageContext) -> dict[str, Any]:
    """The name and the channels, but for places that were left empty."""
    places = (page.form.text(f"channel{place}") for place in range(MAX_CHANNELS))
    return {"name": page.form.text("name").strip(), "channels": [name for name in places if name]}
