"""Erases a person from events: only the fact and the id remain."""

import re
from collections.abc import Mapping
from typing import Any

from msgsvc_core.events import store
from msgsvc_core.jobs.contract import JobContext, Stopping

#: Events that are looked through at a time.
WINDOW = 5000

#: Ids that we made.
_ID = re.compile(r"[a-z]{3}_[0-9A-Za-z]{22,}")

#: Fields whose text says nothing of a person. Numbers, yes and no, and our ids stay too.
IMPERSONAL = frozenset(
    {"occurred_at", "auth_time", "channel", "lang", "source", "reason", "status", "permission"}
)

#: Fields that are null where a person has none.
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
    """Whether this is the payload of an event that concerns that person."""
    return isinstance(data, dict) and data.get("subscriber_id") == subscriber_id


async def erase_events(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
    """Empties the copies in the feed, a window at a time. Raises `Stopping` when it should."""
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
    """Nothing, of a kind that programs which read the feed expect."""
    if name in NULLABLE:
        return None
    return type(value)()
