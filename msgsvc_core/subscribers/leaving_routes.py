"""/v1/subscribers: subscribing in a mini app, unsubscribing, resubscribing and erasure."""

from pydantic import Field

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Query, Router
from msgsvc_core.api.types import SubscriberId
from msgsvc_core.kernel.errors import (
    AlreadySubscribed,
    Conflict,
    InvalidExternalId,
    SubscriberNotFound,
)
from msgsvc_core.subscribers.mini_app import (
    MiniAppSubscribing,
    MiniAppSubscriptionAnswer,
    SubscribeInMiniAppBody,
)
from msgsvc_core.subscribers.models import SubscriberAnswer
from msgsvc_core.subscribers.service import Subscribers

router = Router(area="subscribers")


class LeavingQuery(Query):
    """Whether to erase the subscriber too."""

    erase: bool = Field(
        default=False, description="Permanently delete all personal data.", examples=[False]
    )


@router.delete("/v1/subscribers/{subscriber_id}", errors=(SubscriberNotFound,))
async def delete_subscriber(
    ctx: Context, subscriber_id: SubscriberId, query: LeavingQuery, subscribers: Subscribers
) -> None:
    """Unsubscribes a person, or with `erase=true` deletes all personal data.

    Unsubscribed people get no messages, can resubscribe and are still listed; unsubscribing is
    idempotent. Erasure is permanent: messages and copies in events are deleted shortly afterwards, and
    data of operations in progress ten minutes later.
    """
    if query.erase:
        await subscribers.erase(ctx.tx, ctx.project_id, subscriber_id)
    else:
        await subscribers.unsubscribe(ctx.tx, ctx.project_id, subscriber_id, reason="api")


@router.post(
    "/v1/subscribers/{subscriber_id}/subscribe",
    errors=(SubscriberNotFound, AlreadySubscribed, Conflict),
)
async def subscribe_again(
    ctx: Context, subscriber_id: SubscriberId, subscribers: Subscribers
) -> SubscriberAnswer:
    """Subscribes an unsubscribed person again; not possible after they blocked the bot.

    On a channel where people are known by an address, it also lifts a block, e.g. after a bounce.
    """
    subscriber = await subscribers.resubscribe(ctx.tx, ctx.project_id, subscriber_id)
    return SubscriberAnswer.of(subscriber)


@router.post("/v1/subscribers/mini-app", errors=(Conflict, InvalidExternalId))
async def subscribe_in_mini_app(
    ctx: Context, body: SubscribeInMiniAppBody, mini_apps: MiniAppSubscribing
) -> MiniAppSubscriptionAnswer:
    """Subscribes a person who opened the bot's mini app, identified by its signed data.

    Send the data that the page received from your own server: this endpoint verifies that the messenger
    signed it for the bot within the last day. The request is idempotent.
    """
    subscriber, created = await mini_apps.subscribe(ctx.tx, ctx.project_id, body)
    return MiniAppSubscriptionAnswer.after(subscriber, created=created)
