"""The SQL of the event feed."""

import json
from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.events.contract import Event
from msgsvc_core.json_text import to_json


async def insert_many(tx: Tx, events: Sequence[Event]) -> None:
    await tx.insert_many(
        "core_events",
        [
            {
                "project_id": event.project_id,
                "event_id": event.event_id,
                "name": event.name,
                "data": to_json(event.data),
                "occurred_at_ms": event.occurred_at_ms,
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


def _event(row: Row) -> Event:
    return Event(
        event_id=row["event_id"],
        project_id=row["project_id"],
        name=row["name"],
        data=json.loads(row["data"]),
        occurred_at_ms=row["occurred_at_ms"],
    )
