"""/v1/subscribers, and the tags and permissions of one."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.types import SubscriberId
from msgsvc_core.channels.registry import Channels
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import (
    AlreadySubscribed,
    BadRequest,
    Conflict,
    InvalidExternalId,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.models import (
    AddSubscriberBody,
    CreateLinkBody,
    LinkAnswer,
    NamedPermission,
    NamedTag,
    SubscriberAnswer,
    SubscriberList,
    SubscriberQuery,
    UpdateSubscriberBody,
)
from msgsvc_core.subscribers.service import Subscribers

router = Router(
    area="subscribers",
    description="People who started a bot: their tags, permissions and subscription links.",
    group="people",
)
# Of one subscriber; the API reference lists each after the tags and permissions of the project.
tags_router = Router(area="subscribers")
permissions_router = Router(area="subscribers")


@router.get("/v1/subscribers", errors=(BadRequest,), first_call=50)
async def list_subscribers(
    ctx: Context, query: SubscriberQuery, subscribers: Subscribers
) -> SubscriberList:
    """Lists the project's subscribers, newest first; with `query` search results, by name."""
    found = await subscribers.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, query.place_of)
    return SubscriberList(
        data=[SubscriberAnswer.of(subscriber) for subscriber in page],
        next_cursor=following,
    )


@router.post(
    "/v1/subscribers",
    status=201,
    errors=(AlreadySubscribed, Conflict, InvalidExternalId, NotFound),
)
async def add_subscriber(
    ctx: Context, body: AddSubscriberBody, subscribers: Subscribers
) -> SubscriberAnswer:
    """Adds a person by their address, on a channel where people are known by one, such as email.

    On messengers, people subscribe by themselves: see `POST /v1/subscribers/links`. The address counts as
    verified once the person signs in or enters a one-time code.
    """
    return SubscriberAnswer.of(await subscribers.add(ctx.tx, ctx.project_id, body))


@router.get("/v1/subscribers/{subscriber_id}", errors=(SubscriberNotFound,))
async def get_subscriber(
    ctx: Context, subscriber_id: SubscriberId, subscribers: Subscribers
) -> SubscriberAnswer:
    """Shows one subscriber."""
    subscriber = await subscribers.get(ctx.tx, ctx.project_id, subscriber_id)
    return SubscriberAnswer.of(subscriber)


@router.patch(
    "/v1/subscribers/{subscriber_id}", errors=(Conflict, InvalidExternalId, SubscriberNotFound)
)
async def update_subscriber(
    ctx: Context, subscriber_id: SubscriberId, body: UpdateSubscriberBody, subscribers: Subscribers
) -> SubscriberAnswer:
    """Changes a subscriber; omitted fields stay unchanged. Missing tags are created."""
    subscriber = await subscribers.change(ctx.tx, ctx.project_id, subscriber_id, body)
    return SubscriberAnswer.of(subscriber)


@tags_router.put(
    "/v1/subscribers/{subscriber_id}/tags/{key}", errors=(Conflict, SubscriberNotFound)
)
async def add_subscriber_tag(
    ctx: Context, subscriber_id: SubscriberId, key: NamedTag, subscribers: Subscribers
) -> SubscriberAnswer:
    """Adds a tag to a subscriber, creating it if needed."""
    await subscribers.add_tag(ctx.tx, ctx.project_id, subscriber_id, key)
    subscriber = await subscribers.get(ctx.tx, ctx.project_id, subscriber_id)
    return SubscriberAnswer.of(subscriber)


@tags_router.delete(
    "/v1/subscribers/{subscriber_id}/tags/{key}",
    status=204,
    errors=(NotFound, SubscriberNotFound),
)
async def remove_subscriber_tag(
    ctx: Context, subscriber_id: SubscriberId, key: NamedTag, subscribers: Subscribers
) -> None:
    """Removes a tag from a subscriber, if present."""
    await subscribers.remove_tag(ctx.tx, ctx.project_id, subscriber_id, key)


@permissions_router.put(
    "/v1/subscribers/{subscriber_id}/permissions/{key}",
    errors=(NotFound, SubscriberNotFound),
)
async def grant_permission(
    ctx: Context, subscriber_id: SubscriberId, key: NamedPermission, subscribers: Subscribers
) -> SubscriberAnswer:
    """Grants a permission on behalf of a subscriber; others stay unchanged."""
    await subscribers.set_permission(ctx.tx, ctx.project_id, subscriber_id, key, True)
    return SubscriberAnswer.of(await subscribers.get(ctx.tx, ctx.project_id, subscriber_id))


@permissions_router.delete(
    "/v1/subscribers/{subscriber_id}/permissions/{key}",
    status=204,
    errors=(NotFound, SubscriberNotFound),
)
async def revoke_permission(
    ctx: Context, subscriber_id: SubscriberId, key: NamedPermission, subscribers: Subscribers
) -> None:
    """Revokes a permission on behalf of a subscriber, if granted."""
    await subscribers.set_permission(ctx.tx, ctx.project_id, subscriber_id, key, False)


@router.post("/v1/subscribers/links", status=201, errors=(Conflict, InvalidExternalId))
async def create_link(
    ctx: Context, body: CreateLinkBody, subscription_links: SubscriptionLinks, channels: Channels
) -> LinkAnswer:
    """Creates a subscription link: one per channel, also as a QR code."""
    payload, expires_at_ms = await subscription_links.create(ctx.tx, ctx.project_id, body)
    links = channels.deep_links(ctx.project_id, payload)
    await channels.remember_start(ctx.tx, ctx.project_id, payload, expires_at_ms)
    return LinkAnswer(
        links=links,
        qr=channels.qr_links(links, ctx.project_id, payload),
        start_messages=channels.start_messages(ctx.project_id, payload, links) or None,
        expires_at=to_rfc3339(expires_at_ms),
    )
