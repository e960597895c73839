"""/v1/events: the project's event feed, and custom events that it reports."""

from typing import Any

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
    """Paging, and one event's name."""

    event: str | None = None


class EventAnswer(ResponseModel):
    """An event, with the body that a webhook would carry beside its id."""

    event_id: str
    event: str
    data: dict[str, Any]


class EventList(ResponseModel):
    """A page of events, newest first."""

    data: list[EventAnswer]
    next_cursor: str | None


@router.get("/v1/events", errors=(BadRequest,))
async def list_events(ctx: Context, query: EventQuery) -> EventList:
    """Lists what happened in the project, newest first."""
    found = await store.list_page(
        ctx.tx, ctx.project_id, query.event, query.after, query.fetch_limit
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
