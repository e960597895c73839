"""Erases a subscriber from delivery bodies and receivers' responses, headers included.

A pending delivery continues with its emptied body: the receiver learns that something happened, and to which
id.
"""

import json
from collections.abc import Sequence

from msgsvc_core.db import Database, Tx
from msgsvc_core.db.sql import array_param, in_array, key_params, key_table
from msgsvc_core.events import anonymous, is_about
from msgsvc_core.kernel.json import to_json

#: Deliveries that are looked through at a time.
WINDOW = 5000


async def erase(db: Database, project_id: str, subscriber_id: str) -> None:
    """Empties the delivery log's copies of events that concern the subscriber, in small transactions."""
    after = ""
    while True:
        async with db.read() as tx:
            until = await _window_end(tx, project_id, after)
            if until is None:
                return
            bodies = await _bodies_with(tx, project_id, subscriber_id, after, until)
        about = {
            delivery_id: body
            for delivery_id, body in bodies.items()
            if is_about(json.loads(body).get("data"), subscriber_id)
        }
        if about:
            async with db.transaction() as tx:
                await _set_bodies(tx, project_id, {each: _emptied(about[each]) for each in about})
                await _empty_answers(tx, project_id, list(about))
        after = until


def _emptied(body: str) -> str:
    fields = json.loads(body)
    return to_json({**fields, "data": anonymous(fields["data"])})


async def _window_end(tx: Tx, project_id: str, after: str) -> str | None:
    end: str | None = await tx.fetch_val(
        "SELECT MAX(delivery_id) AS last FROM (SELECT delivery_id FROM webhooks_deliveries"
        " WHERE project_id = :project_id AND delivery_id > :after"
        " ORDER BY delivery_id LIMIT :most) AS these",
        {"project_id": project_id, "after": after, "most": WINDOW},
    )
    return end


async def _bodies_with(
    tx: Tx, project_id: str, text: str, after: str, until: str
) -> dict[str, str]:
    rows = await tx.fetch_all(
        "SELECT delivery_id, body FROM webhooks_deliveries WHERE project_id = :project_id"
        " AND delivery_id > :after AND delivery_id <= :until AND body LIKE :pattern",
        {"project_id": project_id, "after": after, "until": until, "pattern": f"%{text}%"},
    )
    return {row["delivery_id"]: row["body"] for row in rows}


async def _set_bodies(tx: Tx, project_id: str, bodies: dict[str, str]) -> None:
    await tx.execute(
        "UPDATE webhooks_deliveries AS d SET body = keys.body"
        f" FROM {key_table(('project', 'delivery', 'body'), tx.dialect)}"
        # The complete key from `keys`: with a separate condition on the project, SQLite scans its whole
        # journal.
        " WHERE d.project_id = keys.project AND d.delivery_id = keys.delivery",
        key_params([(project_id, *each) for each in bodies.items()], tx.dialect),
    )


async def _empty_answers(tx: Tx, project_id: str, delivery_ids: Sequence[str]) -> None:
    await tx.execute(
        "UPDATE webhooks_attempts SET answer = '', response_headers = NULL WHERE project_id = :project_id"
        f" AND {in_array('delivery_id', 'ids', tx.dialect)}",
        {"project_id": project_id, "ids": array_param(delivery_ids, tx.dialect)},
    )
