"""The SQL of bulk actions, and of the lists of those whom they are about."""

import json
from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_no_key_update, key_params, key_table
from msgsvc_core.subscribers.bulk_actions.models import (
    OPEN,
    BulkAction,
    BulkError,
    BulkStatus,
)
from msgsvc_core.subscribers.filters import filter_of
from msgsvc_core.subscribers.models import SubscriberFilters

_COLUMNS = (
    "project_id, bulk_action_id, action, tag_id, filters, status, collected_to, total, done, failed,"
    " error, created_at_ms, finished_at_ms"
)
_SELECT = (
    f"SELECT {', '.join(f'b.{column}' for column in _COLUMNS.split(', '))}, (SELECT g.name"
    " FROM core_tags g WHERE g.project_id = b.project_id AND g.tag_id = b.tag_id) AS tag"
    " FROM core_bulk_actions b WHERE b.project_id = :project_id"
)
_OPEN = ", ".join(f"'{status}'" for status in OPEN)


async def insert(tx: Tx, bulk: BulkAction) -> None:
    row = {column: getattr(bulk, column) for column in _COLUMNS.split(", ")}
    await tx.insert("core_bulk_actions", row)


async def find(tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction | None:
    row = await tx.fetch_one(
        f"{_SELECT} AND b.bulk_action_id = :bulk_action_id",
        {"project_id": project_id, "bulk_action_id": bulk_action_id},
    )
    return None if row is None else _bulk(row)


async def lock(tx: Tx, project_id: str, bulk_action_id: str) -> BulkAction | None:
    """The same, which nobody else changes until `tx` ends."""
    await tx.fetch_val(
        "SELECT status FROM core_bulk_actions WHERE project_id = :project_id"
        f" AND bulk_action_id = :bulk_action_id{for_no_key_update(tx.dialect)}",
        {"project_id": project_id, "bulk_action_id": bulk_action_id},
    )
    return await find(tx, project_id, bulk_action_id)


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[BulkAction]:
    """Newest first."""
    condition = "" if after is None else " AND b.bulk_action_id < :after"
    rows = await tx.fetch_all(
        f"{_SELECT}{condition} ORDER BY b.bulk_action_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_bulk(row) for row in rows]


async def select(
    tx: Tx, project_id: str, filters: SubscriberFilters, after: str | None, limit: int
) -> tuple[list[str], str | None]:
    """The ids of the next subscribers who match, newest first, and the last one that was looked at; None if
    there are no more. `filters` name a tag by its id."""
    asked = filter_of(project_id, filters, after)
    rows = await tx.fetch_all(
        f"SELECT s.subscriber_id, s.created_at_ms FROM {asked.source} WHERE {asked.condition}"
        f" ORDER BY {asked.order} DESC LIMIT :most",
        {**asked.params, "most": limit},
    )
    since_ms = -1 if filters.created_after is None else filters.created_after
    found = [row["subscriber_id"] for row in rows if row["created_at_ms"] > since_ms]
    is_last = len(found) < limit
    return found, None if is_last else found[-1]


async def add_targets(tx: Tx, bulk: BulkAction, ids: Sequence[str]) -> None:
    """Writes down the next of those whom it is about."""
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
    """Up to `limit` of those whom it has not reached; none at the end."""
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


async def existing(tx: Tx, project_id: str, ids: Sequence[str]) -> set[str]:
    """Those of the ids whose subscribers exist."""
    rows = await tx.fetch_all(
        f"SELECT s.subscriber_id FROM {key_table(('project', 'subscriber'), tx.dialect)}"
        " CROSS JOIN core_subscribers s"
        " WHERE s.project_id = keys.project AND s.subscriber_id = keys.subscriber",
        key_params([(project_id, one) for one in ids], tx.dialect),
    )
    return {row["subscriber_id"] for row in rows}


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
    status: BulkStatus,
    now_ms: int,
    error: BulkError | None = None,
) -> bool:
    """Ends one that is open, and deletes the list of those whom it was about; False if it has ended."""
    key = {"project_id": project_id, "bulk_action_id": bulk_action_id}
    is_ended = await tx.execute(
        "UPDATE core_bulk_actions SET status = :status, error = :error, finished_at_ms = :now_ms"
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
    return BulkAction(**{column: row[column] for column in (*_COLUMNS.split(", "), "tag")})
