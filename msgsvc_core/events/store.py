"""The SQL of the event feed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of, key_params, key_table
from msgsvc_core.events.contract import Event
from msgsvc_core.kernel.json import to_json


async def insert_many(tx: Tx, events: Sequence[Event]) -> None:
    await tx.insert_deferred(
        "core_events",
        [
            {
                "project_id": event.project_id,
                "event_id": event.event_id,
                "name": event.name,
                "data": to_json(event.data),
                "occurred_at_ms": event.occurred_at_ms,
                "history_of": event.history_of,
            }
            for event in events
        ],
    )


async def list_page(
    tx: Tx, project_id: str, name: str | None, after: str | None, limit: int
) -> list[Event]:
    """Newest first; `after` is the last id of the page before."""
    conditions = ["project_id = :project_id"]
    if name is not None:
        conditions.append("name = :name")
    if after is not None:
        conditions.append("event_id < :after")
    rows = await tx.fetch_all(
        "SELECT project_id, event_id, name, data, occurred_at_ms FROM core_events"
        f" WHERE {' AND '.join(conditions)} ORDER BY event_id DESC LIMIT :most",
        {"project_id": project_id, "name": name, "after": after, "most": limit},
    )
    return [_event(row) for row in rows]


async def list_later(
    tx: Tx, project_id: str, name: str | None, after: str, limit: int
) -> list[Event]:
    """Oldest first, from the first id after `after`."""
    named = "" if name is None else " AND name = :name"
    rows = await tx.fetch_all(
        "SELECT project_id, event_id, name, data, occurred_at_ms FROM core_events"
        f" WHERE project_id = :project_id AND event_id > :after{named}"
        " ORDER BY event_id LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit}
        | ({} if name is None else {"name": name}),
    )
    return [_event(row) for row in rows]


async def history(
    tx: Tx, project_id: str, subscriber_id: str, after: str | None, limit: int
) -> list[Event]:
    """Newest first; `after` is the last id of the page before."""
    before = "" if after is None else " AND event_id < :after"
    rows = await tx.fetch_all(
        "SELECT project_id, event_id, name, data, occurred_at_ms FROM core_events"
        f" WHERE project_id = :project_id AND history_of = :subscriber_id{before}"
        " ORDER BY event_id DESC LIMIT :most",
        {"project_id": project_id, "subscriber_id": subscriber_id, "most": limit}
        | ({} if after is None else {"after": after}),
    )
    return [_event(row) for row in rows]


async def window_end(tx: Tx, project_id: str, after: str, limit: int) -> str | None:
    """The id of the last of up to `limit` events after `after`, oldest first; None if there are no more."""
    end: str | None = await tx.fetch_val(
        "SELECT MAX(event_id) AS last FROM (SELECT event_id FROM core_events"
        " WHERE project_id = :project_id AND event_id > :after"
        " ORDER BY event_id LIMIT :most) AS these",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return end


async def mentioning(tx: Tx, project_id: str, text: str, after: str, until: str) -> list[Event]:
    """The events after one id, up to another, whose payload contains `text`, approximately."""
    rows = await tx.fetch_all(
        "SELECT project_id, event_id, name, data, occurred_at_ms FROM core_events"
        " WHERE project_id = :project_id AND event_id > :after AND event_id <= :until"
        " AND data LIKE :pattern",
        {"project_id": project_id, "after": after, "until": until, "pattern": f"%{text}%"},
    )
    return [_event(row) for row in rows]


async def set_data(
    tx: Tx, project_id: str, changed: Sequence[tuple[str, Mapping[str, Any]]]
) -> None:
    """Replaces the payloads of events, by id."""
    await tx.execute(
        "UPDATE core_events AS e SET data = keys.data"
        f" FROM {key_table(('project', 'event', 'data'), tx.dialect)}"
        # The complete key from `keys`: with a separate condition on the project, SQLite scans all its events.
        " WHERE e.project_id = keys.project AND e.event_id = keys.event",
        key_params(
            [(project_id, event_id, to_json(data)) for event_id, data in changed], tx.dialect
        ),
    )


async def between(
    tx: Tx,
    project_id: str,
    names: Sequence[str],
    *,
    since_ms: int,
    until_ms: int,
    after: str | None,
    limit: int,
) -> list[Event]:
    """Oldest first; `after` is the last id of the previous page. An empty `names` means all."""
    conditions, params = _of_time(tx, project_id, names, since_ms, until_ms)
    if after is not None:
        conditions += " AND event_id > :after"
        params["after"] = after
    rows = await tx.fetch_all(
        "SELECT project_id, event_id, name, data, occurred_at_ms FROM core_events"
        f" WHERE {conditions} ORDER BY event_id LIMIT :most",
        {**params, "most": limit},
    )
    return [_event(row) for row in rows]


async def count_by_second(tx: Tx, names: Sequence[str], since_ms: int) -> list[Row]:
    """`second` (Unix), `project_id`, `channel` of the subscriber, `name` and `count` of all projects' events
    of these names since a time: by the index by time."""
    known, params = any_of(
        "+name" if tx.dialect == "sqlite" else "name", "names", names, tx.dialect
    )
    channel = (
        "json_extract(data, '$.channel')"
        if tx.dialect == "sqlite"
        else "CAST(data AS json) ->> 'channel'"
    )
    return await tx.fetch_all(
        f"SELECT occurred_at_ms / 1000 AS second, project_id, {channel} AS channel, name,"
        f" COUNT(*) AS count FROM core_events WHERE occurred_at_ms >= :since_ms AND {known}"
        " GROUP BY 1, 2, 3, 4",
        {"since_ms": since_ms, **params},
    )


async def count(
    tx: Tx, project_id: str, names: Sequence[str], *, since_ms: int, until_ms: int, limit: int
) -> int:
    """Number of events that `between` would return, counted up to `limit`."""
    conditions, params = _of_time(tx, project_id, names, since_ms, until_ms)
    found: int = await tx.fetch_val(
        "SELECT COUNT(*) AS count FROM"
        f" (SELECT event_id FROM core_events WHERE {conditions} LIMIT :most) AS found",
        {**params, "most": limit},
    )
    return found


def _of_time(
    tx: Tx, project_id: str, names: Sequence[str], since_ms: int, until_ms: int
) -> tuple[str, dict[str, Any]]:
    conditions = (
        "project_id = :project_id AND occurred_at_ms >= :since_ms AND occurred_at_ms <= :until_ms"
    )
    params: dict[str, Any] = {
        "project_id": project_id,
        "since_ms": since_ms,
        "until_ms": until_ms,
    }
    if not names:
        return conditions, params
    # In the order of ids. By the index of names, SQLite would sort all events of these names.
    column = "+name" if tx.dialect == "sqlite" else "name"
    known, named = any_of(column, "names", names, tx.dialect)
    return f"{conditions} AND {known}", {**params, **named}


def _event(row: Row) -> Event:
    return Event(
        event_id=row["event_id"],
        project_id=row["project_id"],
        name=row["name"],
        data=json.loads(row["data"]),
        occurred_at_ms=row["occurred_at_ms"],
    )
