"""GET /v1/events: the project's own feed, for those who can't receive webhooks."""

import json
from typing import Any

from pydantic import Field

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Answer, Query, Router
from msgsvc_core.api.pagination import after_cursor, next_cursor
from msgsvc_core.errors import BadRequest

router = Router(area="events")


class EventQuery(Query):
    """Paging, and one event's name."""

    limit: int = Field(50, ge=1, le=100)
    cursor: str | None = None
    event: str | None = None


class EventAnswer(Answer):
    """An event, with the body that a webhook would carry beside its id."""

    event_id: str
    event: str
    data: dict[str, Any]


class EventList(Answer):
    """A page of events, newest first."""

    data: list[EventAnswer]
    next_cursor: str | None


@router.get("/v1/events", errors=(BadRequest,))
async def list_events(ctx: Context, query: EventQuery) -> EventList:
    """Lists what happened in the project, newest first."""
    conditions = ["project_id = :project_id"]
    if query.event is not None:
        conditions.append("name = :name")
    after = after_cursor(query.cursor)
    if after is not None:
        conditions.append("event_id < :after")
    rows = await ctx.tx.fetch_all(
        f"SELECT event_id, name, data FROM core_events WHERE {' AND '.join(conditions)}"
        " ORDER BY event_id DESC LIMIT :most",
        {
            "project_id": ctx.project_id,
            "name": query.event,
            "after": after,
            "most": query.limit + 1,
        },
    )
    page = rows[: query.limit]
    return EventList(
        data=[
            EventAnswer(event_id=row["event_id"], event=row["name"], data=json.loads(row["data"]))
            for row in page
        ],
        next_cursor=next_cursor(page[-1]["event_id"]) if len(rows) > query.limit else None,
    )
