"""Erases a subscriber from events: only the fact and the id remain."""

import re
from collections.abc import Mapping
from typing import Any

from msgsvc_core.events import store
from msgsvc_core.jobs.contract import JobContext, Stopping

#: Events that are searched per transaction.
WINDOW = 5000

#: Ids made by the service.
_ID = re.compile(r"[a-z]{3}_[0-9A-Za-z]{22,}")

#: Text fields without personal data. Numbers, booleans and our ids are kept too.
IMPERSONAL = frozenset(
    {"occurred_at", "auth_time", "channel", "lang", "source", "reason", "status", "permission"}
)

#: Fields that are null if a subscriber has none.
NULLABLE = frozenset({"external_id"})

#: Fields with user-supplied content, which may look like an id of ours.
CHOSEN = frozenset({"first_name", "username", "external_id"})


def anonymous(data: Mapping[str, Any]) -> dict[str, Any]:
    """An event payload without personal data: the same fields, with empty values where they could identify
    the person.

    For plugins that keep payloads (hook `erase_subscriber`).
    """
    return {
        name: value if _stays(name, value) else _empty(name, value) for name, value in data.items()
    }


def is_about(data: Any, subscriber_id: str) -> bool:
    """Whether the payload is of an event that concerns the subscriber."""
    return isinstance(data, dict) and data.get("subscriber_id") == subscriber_id


async def erase_events(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
    """Empties the copies in the feed, in steps. Raises `Stopping` when the runner is shutting down."""
    after = ""
    while True:
        if ctx.stopping:
            raise Stopping
        async with ctx.reading() as tx:
            until = await store.window_end(tx, project_id, after, WINDOW)
            if until is None:
                return
            found = await store.mentioning(tx, project_id, subscriber_id, after, until)
        changed = [
            (event.event_id, emptied)
            for event in found
            if is_about(event.data, subscriber_id)
            and (emptied := anonymous(event.data)) != event.data
        ]
        if changed:
            async with ctx.transaction() as tx:
                await store.set_data(tx, project_id, changed)
        after = until


def _stays(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return name in IMPERSONAL or (name not in CHOSEN and bool(_ID.fullmatch(value)))
    return not isinstance(value, dict | list)


def _empty(name: str, value: Any) -> Any:
    """An empty value of the same type, which programs that read the feed can parse."""
    if name in NULLABLE:
        return None
    return type(value)()
