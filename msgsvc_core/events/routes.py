"""/v1/events: the project's event feed, and custom events that it reports."""

from typing import Any

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import ResponseModel, Router
from msgsvc_core.api.pagination import SKEW_MS, NextCursor, PageQuery
from msgsvc_core.events import store
from msgsvc_core.events.tracked import TrackedEventAnswer, TrackedEvents, TrackEventBody
from msgsvc_core.kernel.errors import (
    BadRequest,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
)
from msgsvc_core.kernel.ids import earliest_id

router = Router(
    area="events",
    description="The feed of everything that happened, and events that you report.",
    group="developers",
)


class EventQuery(PageQuery):
    """Paging, one event's name, and where to read on from."""

    event: str | None = Field(
        None, description="Only events of this name.", examples=["subscription.created"]
    )
    after_event_id: str | None = Field(
        default=None,
        pattern=r"^(evt_[0-9A-Za-z]{1,64})?$",
        description="Only later events than this one, oldest first; empty: all, oldest first.",
        examples=[examples.EVENT_ID],
    )


class EventAnswer(ResponseModel):
    """An event."""

    event_id: str = Field(
        description="Same as in webhooks, so that what arrived twice is found; ids sort by time.",
        examples=[examples.EVENT_ID],
    )
    event: str = Field(
        description="Name of the event, of the core or a plugin.", examples=["subscription.created"]
    )
    data: dict[str, Any] = Field(
        description="The body of a webhook without `event_id`: `occurred_at`, the fields of its"
        " subscriber, and its own.",
        examples=[
            {
                "subscriber_id": examples.SUBSCRIBER_ID,
                "channel": examples.CHANNEL,
                "first_name": "Ann",
                "username": "ann_example",
                "lang": "en",
                "tags": [examples.TAG],
                "external_id": examples.EXTERNAL_ID,
                "source": "deep_link",
                "occurred_at": examples.TIME,
            }
        ],
    )


class EventList(ResponseModel):
    """A page of events, newest first unless `after_event_id` was given."""

    data: list[EventAnswer] = Field(description="The page's events.")
    next_cursor: NextCursor


@router.get("/v1/events", errors=(BadRequest,), first_call=70)
async def list_events(ctx: Context, query: EventQuery) -> EventList:
    """Lists what happened in the project, newest first.

    To follow the feed, poll with the id of the last event that you handled as `after_event_id`. Concurrent
    requests may commit in another order than that of their events' ids: read the last seconds twice, and skip
    events that you have seen, as the clients' `events.follow` does.
    """
    if query.after_event_id is None:
        found = await store.list_page(
            ctx.tx, ctx.project_id, query.event, query.begin("evt"), query.fetch_limit
        )
    else:
        found = await store.list_later(
            ctx.tx,
            ctx.project_id,
            query.event,
            _begin(query),
            query.fetch_limit,
        )
    is_newest_first = query.after_event_id is None
    page, following = query.cut(found, lambda event: event.event_id, by_time=is_newest_first)
    return EventList(
        data=[
            EventAnswer(event_id=event.event_id, event=event.name, data=event.data)
            for event in page
        ],
        next_cursor=following,
    )


def _begin(query: EventQuery) -> str:
    """The id after which a page starts that is read oldest first."""
    after = query.after or query.after_event_id or ""
    if query.created_after is None:
        return after
    return max(after, earliest_id("evt", max(query.created_after - SKEW_MS, 0)))


@router.post(
    "/v1/events",
    status=202,
    errors=(SubscriberNotFound, InvalidExternalId, MutuallyExclusiveIdentifiers),
    shows_secrets=False,
)
async def track_event(
    ctx: Context, body: TrackEventBody, tracked: TrackedEvents
) -> TrackedEventAnswer:
    """Reports something a subscriber did; it is emitted as the event `event.tracked`."""
    event = await tracked.track(ctx.tx, ctx.project_id, body)
    return TrackedEventAnswer(event_id=event.event_id)
