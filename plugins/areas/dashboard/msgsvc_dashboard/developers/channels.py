"""Channels: the messengers of the project, and its own bots."""

from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.fields import SettingField, fields_of, read_fields
from msgsvc_core.channels.health.problems import ChannelTroubles
from msgsvc_core.channels.project_channels.models import CreateChannelBody, UpdateChannelBody
from msgsvc_core.channels.project_channels.requests import ChannelRequests
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.kernel.clock import from_rfc3339
from msgsvc_core.kernel.errors import NotFound
from msgsvc_dashboard.developers.area import pages

#: How the states of a bot are coloured, beside their word.
TONES = {
    "working": "good",
    "stopped": "bad",
    "unavailable": "warn",
    "paused": "warn",
    "broken": "bad",
    "receiving": "good",
    "interrupted": "bad",
}


@pages.get(
    "/channels",
    access="project:read",
    nav=Nav("Channels", icon="bot", group="developers", order=30),
)
async def channels(
    page: PageContext,
    own_channels: ProjectChannels,
    all_channels: Channels,
    reception_health: ReceptionHealth,
    channel_troubles: ChannelTroubles,
) -> Render:
    found = await own_channels.page(
        page.tx, page.project_id, None, PageQuery(limit=100).fetch_limit
    )
    usable = all_channels.list_for_project(page.project_id)
    shared = [each for each in usable if each.identity.project_id is None]
    values = {
        "own": await own_channels.answers(page.tx, found),
        "shared": shared,
        "kinds": all_channels.kinds.for_projects,
        "troubles": {
            each.channel: each.kind
            for each in await channel_troubles.of_project(page.tx, page.project_id)
        },
        "receptions": await reception_health.shown(page.tx, shared),
        "tones": TONES,
        "words": _words(page),
    }
    return Render("channels.html", values)


@pages.get("/channels/new", access="project:write")
async def new_channel(
    page: PageContext, all_channels: Channels, channel_requests: ChannelRequests
) -> Render:
    kinds = all_channels.kinds.for_projects
    chosen = page.form.text("plugin") or page.query.get("kind", "")
    fields = fields_of(kinds[chosen]) if chosen in kinds else []
    by_name = sorted(kinds.items())
    is_known = chosen in kinds
    values = {
        "kinds": by_name,
        "chosen": chosen,
        "fields": fields,
        "maker": channel_requests.manager(chosen) if is_known else None,
        "messenger": (kinds[chosen].title if is_known else "") or chosen,
    }
    return Render("channel_new.html", values)


@pages.post(
    "/channels/new",
    access="project:write",
    form_page=new_channel,
    title=lambda _: _("Channel created"),
)
async def create_channel(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels
) -> Redirect:
    plugin = page.form.text("plugin")
    body = validate(
        CreateChannelBody,
        {
            "name": page.form.text("name").strip(),
            "plugin": plugin,
            "settings": _typed(page, _fields(page, all_channels, plugin)),
        },
    )
    await own_channels.create(page.tx, page.project_id, body)
    page.note(channel=body.name)
    return Redirect(page.url(f"/channels/{body.name}"), page._("Added. Check that it works."))


@pages.get("/channels/{name}", access="project:read")
async def channel(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels, shelves: Shelf
) -> Render:
    name = page.params["name"]
    found = await own_channels.get(page.tx, page.project_id, name)
    [answer] = await own_channels.answers(page.tx, [found])
    since, paused_until = answer.reception and answer.reception.since, answer.paused_until
    set_aside = await shelves.count(page.tx, [answer.channel_id])
    values = {
        "channel": answer,
        "interrupted_since_ms": since and from_rfc3339(since),
        "paused_until_ms": paused_until and from_rfc3339(paused_until),
        "fields": _fields(page, all_channels, answer.plugin),
        "tones": TONES,
        "words": _words(page),
        "health": None,
        "set_aside": set_aside.get(answer.channel_id, 0),
    }
    return Render("channel.html", values)


@pages.post(
    "/channels/{name}",
    access="project:write",
    form_page=channel,
    title=lambda _: _("Channel changed"),
)
async def change_channel(
    page: PageContext, own_channels: ProjectChannels, all_channels: Channels
) -> Redirect:
    name = page.params["name"]
    found = await own_channels.get(page.tx, page.project_id, name)
    fields = _fields(page, all_channels, found.plugin)
    given: dict[str, Any] = _typed(page, fields)
    # What was emptied goes back to its default; a secret that is left empty stays.
    gone = {field.name: None for field in fields if field.sort not in {"secret", "switch"}}
    body = validate(UpdateChannelBody, {"settings": {**gone, **given}})
    await own_channels.update(page.tx, page.project_id, name, body)
    return Redirect(page.url(f"/channels/{name}"), page._("Saved."))


@pages.post(
    "/channels/{name}/check",
    access="project:write",
    holds_connection=False,
    title=lambda _: _("Channel checked"),
)
async def check_channel(page: PageContext, own_channels: ProjectChannels) -> Redirect:
    name = page.params["name"]
    health, reception = await own_channels.check(page.project_id, name)
    if health.ok and reception is not None and reception.status == "interrupted":
        said = page._("It sends, but does not receive: {why}", why=reception.detail or "")
    elif health.ok:
        who = health.profile.name if health.profile else name
        said = page._("Connected as {bot}.", bot=who)
    else:
        said = page._("It does not work: {why}", why=health.detail)
    return Redirect(page.url(f"/channels/{name}"), said)


@pages.post("/channels/{name}/delete", access="project:write", title=lambda _: _("Channel deleted"))
async def delete_channel(page: PageContext, own_channels: ProjectChannels) -> Redirect:
    name = page.params["name"]
    await own_channels.delete(page.tx, page.project_id, name)
    return Redirect(page.url("/channels"), page._("Removed."))


def _fields(page: PageContext, all_channels: Channels, plugin: str) -> list[SettingField]:
    kind = all_channels.kinds.for_projects.get(plugin)
    if kind is None:
        raise NotFound(page._("This type of messenger is no longer available."))
    return fields_of(kind)


def _typed(page: PageContext, fields: list[SettingField]) -> dict[str, Any]:
    typed = {field.name: page.form.text(f"s_{field.name}") for field in fields}
    return read_fields(fields, typed)


def _words(page: PageContext) -> dict[str, str]:
    return {
        "working": page._("Working"),
        "stopped": page._("Blocked by the messenger"),
        "unavailable": page._("The messenger is not responding"),
        "paused": page._.pgettext("channel", "Paused"),
        "broken": page._("Can't start"),
        "receiving": page._("Receiving"),
        "interrupted": page._("Not receiving"),
    }
