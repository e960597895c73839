"""The list of messages, and one message with its outcome and possible actions."""

import json

from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import ListWalk, Nav, PageContext, Render
from msgsvc_core.kernel.errors import ApiError, SubscriberNotFound
from msgsvc_core.messages.bodies import MessageQuery
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.service import Messages
from msgsvc_core.routing.models import SkippedReason
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.declared import message_pages as pages
from msgsvc_dashboard.people.filters import read_filters

FILTERS = ("status", "reason", "channel", "created_after", "subscriber_id", "batch_id")

STATUSES = ("queued", "sending", "sent", "failed", "skipped", "unknown")


@pages.get(
    "/messages", access="project:read", nav=Nav("Messages", "message", group="sending", order=10)
)
async def messages(
    page: PageContext, all_messages: Messages, subscribers: Subscribers, channels: Channels
) -> Render:
    project_id = page.project_id
    query, refused = read_filters(page, MessageQuery, *FILTERS)
    found: list[Message] = []
    walk = ListWalk(page, "/messages", FILTERS)
    try:
        found = await all_messages.page(page.tx, project_id, query, ascending=walk.ascending)
        walk.count = await all_messages.count(page.tx, project_id, query)
    except ApiError as error:
        refused = error
    these = walk.cut(found, query.limit, lambda message: message.message_id)
    given = {name: page.query.get(name, "") for name in FILTERS}
    keys = {(project_id, message.subscriber_id) for message in these}
    people = await subscribers.get_many(page.tx, sorted(keys))
    return Render(
        "messages.html",
        {
            "messages": these,
            "refused": refused,
            "people": {subscriber_id: person for (_, subscriber_id), person in people.items()},
            "given": given,
            "is_filtered": any(given.values()),
            "walk": walk,
            "words": labels,
            "statuses": STATUSES,
            "reasons": [str(reason) for reason in (*Reason, *SkippedReason)],
            "channels": [channel.name for channel in channels.list_for_project(project_id)],
        },
    )


@pages.get("/messages/{message_id}", access="project:read")
async def message(
    page: PageContext, all_messages: Messages, channels: Channels, subscribers: Subscribers
) -> Render:
    project_id = page.project_id
    found = await all_messages.find(page.tx, project_id, page.params["message_id"])
    channel = channels.get(found.bot)
    shown = found.content
    takes = channel.capabilities if channel is not None else None
    is_open = found.deleted_at_ms is None
    # One that is sent by a route may have copies on several channels.
    is_there = found.status == "sent" and is_open and found.route_id is None
    return Render(
        "message_state.html" if page.fragment == "state" else "message.html",
        {
            "message": found,
            "person": await receiver(page, subscribers, found.subscriber_id),
            "words": labels,
            "previews": all_messages.previews(project_id, shown, [found.channel]),
            "metadata": json.dumps(found.metadata, ensure_ascii=False, indent=2)
            if found.metadata
            else "",
            "is_under_way": found.status in {"queued", "sending"},
            "may_edit": is_open
            and takes is not None
            and found.route_id is None
            and (found.status == "queued" or (is_there and takes.edit)),
            "may_delete": is_open
            and takes is not None
            and (found.status == "queued" or (is_there and takes.delete)),
        },
    )


async def receiver(
    page: PageContext, subscribers: Subscribers, subscriber_id: str
) -> Subscriber | None:
    """None if they were erased, or don't exist."""
    try:
        return await subscribers.get(page.tx, page.project_id, subscriber_id)
    except SubscriberNotFound:
        return None
