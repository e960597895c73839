"""/v1/events: the project's event feed, and custom events that it reports."""

from typing import Any

from pydantic import Field

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import ResponseModel, Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.events import store
from msgsvc_core.events.tracked import TrackAnswer, TrackBody, TrackedEvents
from msgsvc_core.kernel.errors import (
    BadRequest,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
)

router = Router(area="events")


class EventQuery(PageQuery):
    """Paging, one event's name, and where to read on from."""

    event: str | None = None
    after_event_id: str | None = Field(
        default=None,
        pattern=r"^(evt_[0-9A-Za-z]{1,64})?$",
        description="Only later events than this one, oldest first; empty: all, oldest first.",
    )


class EventAnswer(ResponseModel):
    """An event, with the body that a webhook would carry beside its id."""

    event_id: str
    event: str
    data: dict[str, Any]


class EventList(ResponseModel):
    """A page of events, newest first unless `after_event_id` was given."""

    data: list[EventAnswer]
    next_cursor: str | None


@router.get("/v1/events", errors=(BadRequest,))
async def list_events(ctx: Context, query: EventQuery) -> EventList:
    """Lists what happened in the project, newest first.

    To follow the feed, poll with the id of the last event that you handled as `after_event_id`. Concurrent
    requests may commit in another order than that of their events' ids: read the last seconds twice, and skip
    events that you have seen, as the clients' `events.follow` does.
    """
    if query.after_event_id is None:
        found = await store.list_page(
            ctx.tx, ctx.project_id, query.event, query.after, query.fetch_limit
        )
    else:
        found = await store.list_later(
            ctx.tx,
            ctx.project_id,
            query.event,
            query.after or query.after_event_id,
            query.fetch_limit,
        )
    page, following = query.cut(found, lambda event: event.event_id)
    return EventList(
        data=[
            EventAnswer(event_id=event.event_id, event=event.name, data=event.data)
            for event in page
        ],
        next_cursor=following,
    )


@router.post(
    "/v1/events",
    status=202,
    errors=(SubscriberNotFound, InvalidExternalId, MutuallyExclusiveIdentifiers),
    shows_secrets=False,
)
async def track_event(ctx: Context, body: TrackBody, tracked: TrackedEvents) -> TrackAnswer:
    """Reports something a subscriber did; it is emitted as the event `event.tracked`."""
    event = await tracked.track(ctx.tx, ctx.project_id, body)
    return TrackAnswer(event_id=event.event_id)
