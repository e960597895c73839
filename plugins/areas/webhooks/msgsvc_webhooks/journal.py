"""The SQL of the journal: deliveries, and the attempts of each."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import in_list
from msgsvc_webhooks.models import Attempt, Delivery, DeliveryStatus

_COLUMNS = (
    "project_id, delivery_id, webhook_id, event_id, event, body, status, attempts, step,"
    " created_at_ms, first_attempt_at_ms, next_attempt_at_ms, finished_at_ms"
)
_THIS = "project_id = :project_id AND delivery_id = :delivery_id"


async def insert_many(tx: Tx, deliveries: Sequence[Delivery]) -> None:
    await tx.insert_many("webhooks_deliveries", [asdict(delivery) for delivery in deliveries])


async def find(tx: Tx, project_id: str, delivery_id: str) -> Delivery | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM webhooks_deliveries WHERE {_THIS}",
        {"project_id": project_id, "delivery_id": delivery_id},
    )
    return None if row is None else _delivery(row)


async def list_page(
    tx: Tx, project_id: str, webhook_id: str, after: str | None, limit: int
) -> list[Delivery]:
    """A webhook's deliveries, newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_deliveries"
        " WHERE project_id = :project_id AND webhook_id = :webhook_id"
        + (" AND delivery_id < :after" if after is not None else "")
        + " ORDER BY delivery_id DESC LIMIT :most",
        {"project_id": project_id, "webhook_id": webhook_id, "after": after, "most": limit},
    )
    return [_delivery(row) for row in rows]


async def attempts_of(
    tx: Tx, project_id: str, delivery_ids: Sequence[str]
) -> dict[str, list[Attempt]]:
    """The attempts by delivery, in their order."""
    if not delivery_ids:
        return {}
    ids, params = in_list("id", delivery_ids)
    rows = await tx.fetch_all(
        "SELECT delivery_id, started_at_ms, duration_ms, status_code, error, answer"
        f" FROM webhooks_attempts WHERE project_id = :project_id AND delivery_id IN {ids}"
        " ORDER BY delivery_id, number",
        {"project_id": project_id, **params},
    )
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    for row in rows:
        attempts[row["delivery_id"]].append(_attempt(row))
    return attempts


async def record(
    tx: Tx,
    delivery: Delivery,
    attempt: Attempt,
    *,
    status: DeliveryStatus,
    step: int,
    next_attempt_at_ms: int | None,
    finished_at_ms: int | None,
) -> None:
    """Writes an attempt, and what has become of its delivery."""
    number = delivery.attempts + 1
    await tx.insert(
        "webhooks_attempts",
        {
            "project_id": delivery.project_id,
            "delivery_id": delivery.delivery_id,
            "number": number,
            "started_at_ms": attempt.started_at_ms,
            "duration_ms": attempt.duration_ms,
            "status_code": attempt.status_code,
            "error": attempt.error,
            "answer": attempt.answer,
        },
    )
    await tx.execute(
        "UPDATE webhooks_deliveries SET status = :status, attempts = :number, step = :step,"
        " first_attempt_at_ms = COALESCE(first_attempt_at_ms, :started_at_ms),"
        " next_attempt_at_ms = :next_attempt_at_ms, finished_at_ms = :finished_at_ms"
        f" WHERE {_THIS}",
        {
            "status": status,
            "number": number,
            "step": step,
            "started_at_ms": attempt.started_at_ms,
            "next_attempt_at_ms": next_attempt_at_ms,
            "finished_at_ms": finished_at_ms,
            "project_id": delivery.project_id,
            "delivery_id": delivery.delivery_id,
        },
    )


async def cancel(tx: Tx, delivery: Delivery, now_ms: int) -> None:
    """Ends a delivery without a further attempt: its webhook is not there any more."""
    await _end(tx, delivery, "cancelled", now_ms)


async def fail(tx: Tx, delivery: Delivery, now_ms: int) -> None:
    """Ends a delivery without a further attempt: we could not make one."""
    await _end(tx, delivery, "failed", now_ms)


async def _end(tx: Tx, delivery: Delivery, status: DeliveryStatus, now_ms: int) -> None:
    await tx.execute(
        "UPDATE webhooks_deliveries SET status = :status, next_attempt_at_ms = NULL,"
        f" finished_at_ms = :now_ms WHERE {_THIS}",
        {
            "status": status,
            "now_ms": now_ms,
            "project_id": delivery.project_id,
            "delivery_id": delivery.delivery_id,
        },
    )


async def purge(tx: Tx, before_ms: int) -> None:
    """Removes what began before that time, of all projects."""
    params = {"before_ms": before_ms}
    await tx.execute("DELETE FROM webhooks_attempts WHERE started_at_ms < :before_ms", params)
    await tx.execute("DELETE FROM webhooks_deliveries WHERE created_at_ms < :before_ms", params)


def _delivery(row: Row) -> Delivery:
    return Delivery(**{column: row[column] for column in _COLUMNS.split(", ")})


def _attempt(row: Row) -> Attempt:
    return Attempt(
        started_at_ms=row["started_at_ms"],
        duration_ms=row["duration_ms"],
        status_code=row["status_code"],
        error=row["error"],
        answer=row["answer"],
    )
