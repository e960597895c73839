"""The list of subscribers, its CSV export, and one subscriber."""

import json
from datetime import UTC, datetime
from functools import partial

from msgsvc_core.api.exports import Exports
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Download, ListWalk, Nav, PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.messages.service import Messages
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.export import to_csv
from msgsvc_core.subscribers.models import Subscriber, SubscriberFilters, SubscriberQuery
from msgsvc_core.subscribers.people import People
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.declared import subscriber_pages as pages
from msgsvc_dashboard.people.filters import older, read_filters

FILTERS = (
    "query",
    "tag",
    "permission",
    "channel",
    "lang",
    "status",
    "created_after",
)


@pages.get(
    "/subscribers",
    access="customers:read",
    nav=Nav("Subscribers", "people", group="people", order=10, also=("/invite",)),
)
async def subscribers(
    page: PageContext,
    all_subscribers: Subscribers,
    tags: Tags,
    permissions: Permissions,
    channels: Channels,
) -> Render:
    project_id = page.project_id
    query, refused = read_filters(page, SubscriberQuery, *FILTERS)
    found: list[Subscriber] = []
    walk = ListWalk(page, "/subscribers", FILTERS)
    try:
        if query.query is None:
            found = await all_subscribers.page(page.tx, project_id, query, ascending=walk.ascending)
            walk.count = await all_subscribers.count(page.tx, project_id, query)
        else:
            # A search is by name, and goes on in one direction.
            found = await all_subscribers.page(page.tx, project_id, query)
    except ApiError as error:
        refused = error
    people = walk.cut(found, query.limit, query.place_of)
    if query.query is not None:
        walk.newer = ""
    given = {name: page.query.get(name, "") for name in FILTERS}
    return Render(
        "subscribers.html",
        {
            "people": people,
            "refused": refused,
            "words": labels,
            "given": given,
            "is_filtered": any(given.values()),
            "walk": walk,
            "whom": _whom(page, walk, len(people)),
            "export": page.url("/subscribers/export", **{**given, "query": ""}),
            "may_export": may_export(page),
            "tags": await tags.list_all(page.tx, project_id, 0),
            "permissions": await permissions.list_all(page.tx, project_id),
            "channels": [channel.name for channel in channels.list_for_project(project_id)],
        },
    )


@pages.get("/subscribers/export", access="project:write", holds_connection=False)
async def export(
    page: PageContext,
    clock: Clock,
    db: Database,
    all_subscribers: Subscribers,
    contacts: VerifiedContacts,
    exports: Exports,
) -> Download | Redirect:
    if not may_export(page):
        return Redirect(page.url("/subscribers"), notice=page._("CSV export needs a larger plan."))
    filters, refused = read_filters(page, SubscriberFilters, *FILTERS)
    if refused:
        raise refused
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    pieces = to_csv(db, all_subscribers, contacts, page.project_id, filters)
    stream = exports.start(page.project_id, pieces)
    return Download(stream, f"subscribers-{now:%Y-%m-%d}.csv")


@pages.get("/subscribers/{subscriber_id}", access="customers:read")
async def subscriber(
    page: PageContext,
    all_subscribers: Subscribers,
    messages: Messages,
    tags: Tags,
    permissions: Permissions,
    settings: Settings,
    people: People,
    events: Events,
    outbox: BotOutbox,
) -> Render:
    project_id = page.project_id
    subscriber_id = page.params["subscriber_id"]
    person = await all_subscribers.get(page.tx, project_id, subscriber_id)
    query, refused = read_filters(page, PageQuery)
    moments, cursor = await messages.history(page.tx, project_id, subscriber_id, query)
    attributes = person.attributes or {}
    return Render(
        "subscriber.html",
        {
            "person": person,
            "others": await _others(page, people, person),
            "withheld": await outbox.withheld_answers(page.tx, person.bot, person.chat_id),
            "refused": refused,
            "words": labels,
            "event_title": partial(events.title, page._),
            "event_detail": partial(labels.event_detail, page._, events),
            "attributes": attributes,
            "attributes_json": json.dumps(attributes, ensure_ascii=False, indent=2),
            "moments": moments,
            "is_first": query.cursor is None,
            "next": older(page, f"/subscribers/{subscriber_id}", cursor),
            "tags": await tags.list_all(page.tx, project_id, 0),
            "permissions": await permissions.list_all(page.tx, project_id),
            "default_lang": settings.default_lang,
        },
    )


async def _others(page: PageContext, people: People, person: Subscriber) -> list[Subscriber]:
    """The other subscribers of the same person."""
    if person.external_id is None:
        return []
    found = await people.get(page.tx, page.project_id, person.external_id)
    return [each for each in found.subscribers if each.subscriber_id != person.subscriber_id]


def _whom(page: PageContext, walk: ListWalk, on_page: int) -> list[tuple[str, str]]:
    """Those whom an action can be about: all who match only where they can be counted."""
    found = [
        ("chosen", page._("The checked ones")),
        (
            "page",
            page._.ngettext("{count} on this page", "All {count} on this page", on_page),
        ),
    ]
    if walk.count is not None and page.error is None:
        total = f"{walk.count.number:,}" + ("" if walk.count.is_exact else "+")
        text = page._("All that match the filters ({total})", total=total)
        found.append(("all", text))
    return found


def may_export(page: PageContext) -> bool:
    return page.plan is None or page.plan.csv_export
