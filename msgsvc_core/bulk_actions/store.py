"""The SQL of bulk actions, and of the lists of what they are about."""

import json
from collections.abc import Sequence

from msgsvc_core.bulk_actions.models import OPEN, BulkAction, BulkError, BulkStatus, Ended, Kind
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_no_key_update

#: Fields and their columns. Subscribers were the first kind: `tag_id` has the value of any action, and
#: `subscriber_ids` of the targets the ids of any kind.
_COLUMNS = {
    "project_id": "project_id",
    "bulk_action_id": "bulk_action_id",
    "kind": "kind",
    "action": "action",
    "value": "tag_id",
    "filters": "filters",
    "status": "status",
    "collected_to": "collected_to",
    "total": "total",
    "done": "done",
    "failed": "failed",
    "error": "error",
    "created_at_ms": "created_at_ms",
    "finished_at_ms": "finished_at_ms",
}
_SELECT = (
    f"SELECT {', '.join(_COLUMNS.values())} FROM core_bulk_actions WHERE project_id = :project_id"
    " AND kind = :kind"
)
_OPEN = ", ".join(f"'{status}'" for status in OPEN)


async def insert(tx: Tx, bulk: BulkAction) -> None:
    row = {column: getattr(bulk, field) for field, column in _COLUMNS.items()}
    await tx.insert("core_bulk_actions", row)


async def find(tx: Tx, project_id: str, kind: Kind, bulk_action_id: str) -> BulkAction | None:
    row = await tx.fetch_one(
        f"{_SELECT} AND bulk_action_id = :bulk_action_id",
        {"project_id": project_id, "kind": kind, "bulk_action_id": bulk_action_id},
    )
    return None if row is None else _bulk(row)


async def lock(tx: Tx, project_id: str, kind: Kind, bulk_action_id: str) -> BulkAction | None:
    """The same, which nobody else changes until `tx` ends."""
    await tx.fetch_val(
        "SELECT status FROM core_bulk_actions WHERE project_id = :project_id"
        f" AND bulk_action_id = :bulk_action_id{for_no_key_update(tx.dialect)}",
        {"project_id": project_id, "bulk_action_id": bulk_action_id},
    )
    return await find(tx, project_id, kind, bulk_action_id)


async def list_page(
    tx: Tx, project_id: str, kind: Kind, after: str | None, limit: int
) -> list[BulkAction]:
    """Newest first."""
    condition = "" if after is None else " AND bulk_action_id < :after"
    params = {"project_id": project_id, "kind": kind, "most": limit}
    rows = await tx.fetch_all(
        f"{_SELECT}{condition} ORDER BY bulk_action_id DESC LIMIT :most",
        params if after is None else {**params, "after": after},
    )
    return [_bulk(row) for row in rows]


async def add_targets(tx: Tx, bulk: BulkAction, ids: Sequence[str]) -> None:
    """Writes down the next of those that it is about."""
    await tx.insert(
        "core_bulk_targets",
        {
            "project_id": bulk.project_id,
            "bulk_action_id": bulk.bulk_action_id,
            "place": bulk.total,
            "subscriber_ids": json.dumps(ids),
        },
    )


async def collected(tx: Tx, bulk: BulkAction, more: int, collected_to: str | None) -> None:
    await tx.execute(
        "UPDATE core_bulk_actions SET total = total + :more, collected_to = :collected_to"
        " WHERE project_id = :project_id AND bulk_action_id = :bulk_action_id AND status = 'collecting'",
        {**_key(bulk), "more": more, "collected_to": collected_to},
    )


async def next_targets(tx: Tx, bulk: BulkAction, limit: int) -> list[str]:
    """Up to `limit` of those that it has not reached; none at the end."""
    row = await tx.fetch_one(
        "SELECT place, subscriber_ids FROM core_bulk_targets WHERE project_id = :project_id"
        " AND bulk_action_id = :bulk_action_id AND place <= :reached ORDER BY place DESC LIMIT 1",
        {**_key(bulk), "reached": bulk.reached},
    )
    if row is None:
        return []
    ids: list[str] = json.loads(row["subscriber_ids"])
    begin = bulk.reached - row["place"]
    return ids[begin : begin + limit]


async def count(tx: Tx, bulk: BulkAction, *, done: int, failed: int) -> None:
    await tx.execute(
        "UPDATE core_bulk_actions SET done = done + :done, failed = failed + :failed"
        " WHERE project_id = :project_id AND bulk_action_id = :bulk_action_id",
        {**_key(bulk), "done": done, "failed": failed},
    )


async def set_status(
    tx: Tx, bulk: BulkAction, status: BulkStatus, *, before: BulkStatus, made_after_ms: int = -1
) -> bool:
    """Goes on to the next status; False if it is not `before`, or not made after that time."""
    return bool(
        await tx.execute(
            "UPDATE core_bulk_actions SET status = :status WHERE project_id = :project_id"
            " AND bulk_action_id = :bulk_action_id AND status = :before"
            " AND created_at_ms > :made_after_ms",
            {**_key(bulk), "status": status, "before": before, "made_after_ms": made_after_ms},
        )
    )


async def finish(
    tx: Tx,
    project_id: str,
    bulk_action_id: str,
    status: Ended,
    now_ms: int,
    error: BulkError | None = None,
) -> bool:
    """Ends an open bulk action, and deletes its list of targets and its filters, which may name people.
    False if it had ended before."""
    key = {"project_id": project_id, "bulk_action_id": bulk_action_id}
    is_ended = await tx.execute(
        "UPDATE core_bulk_actions SET status = :status, error = :error, finished_at_ms = :now_ms,"
        " filters = NULL"
        " WHERE project_id = :project_id AND bulk_action_id = :bulk_action_id"
        f" AND status IN ({_OPEN})",
        {**key, "status": status, "error": error, "now_ms": now_ms},
    )
    if is_ended:
        await tx.execute(
            "DELETE FROM core_bulk_targets WHERE project_id = :project_id"
            " AND bulk_action_id = :bulk_action_id",
            key,
        )
    return bool(is_ended)


def _key(bulk: BulkAction) -> dict[str, str]:
    return {"project_id": bulk.project_id, "bulk_action_id": bulk.bulk_action_id}


def _bulk(row: Row) -> BulkAction:
    return BulkAction(**{field: row[column] for field, column in _COLUMNS.items()})
