"""A subscriber's history: messages and events, newest first."""

import re

from msgsvc_core.api.pagination import PageQuery, next_cursor
from msgsvc_core.db import Tx
from msgsvc_core.events import Event, Events
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages import store
from msgsvc_core.messages.bodies import MessageQuery
from msgsvc_core.messages.models import Message

#: The position of the previous page in messages and events: the last id of each, or nothing.
_PLACES = re.compile(r"m([0-9A-Za-z]*)_e([0-9A-Za-z]*)", re.ASCII)


@value_object
class Moment:
    """Either a message or an event."""

    at_ms: int
    message: Message | None = None
    event: Event | None = None


async def history(
    events: Events, tx: Tx, project_id: str, subscriber_id: str, query: PageQuery
) -> tuple[list[Moment], str | None]:
    """A page, and the cursor of the next one. Raises `BadRequest` for an invalid cursor."""
    message_id, event_id = _read(query.after)
    to_them = MessageQuery(subscriber_id=subscriber_id)
    messages = await store.list_page(tx, project_id, to_them, message_id, query.fetch_limit)
    happened = await events.history(tx, project_id, subscriber_id, event_id, query.fetch_limit)
    found = [Moment(message.created_at_ms, message=message) for message in messages]
    found += [Moment(event.occurred_at_ms, event=event) for event in happened]
    found.sort(key=lambda moment: moment.at_ms, reverse=True)
    page = found[: query.limit]
    for moment in page:
        message_id = moment.message.message_id if moment.message else message_id
        event_id = moment.event.event_id if moment.event else event_id
    return page, _place(message_id, event_id) if len(found) > query.limit else None


def _place(message_id: str | None, event_id: str | None) -> str:
    bare = [(each or "").rpartition("_")[2] for each in (message_id, event_id)]
    return next_cursor(f"m{bare[0]}_e{bare[1]}")


def _read(after: str | None) -> tuple[str | None, str | None]:
    if after is None:
        return None, None
    match = _PLACES.fullmatch(after)
    if match is None:
        raise BadRequest("not one that this service gave", field="cursor")
    message, event = match.groups()
    return f"msg_{message}" if message else None, f"evt_{event}" if event else None
