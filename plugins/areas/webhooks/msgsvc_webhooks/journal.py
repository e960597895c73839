"""The SQL of the delivery log: deliveries and their attempts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of, in_list, key_params, key_table, limited_delete
from msgsvc_core.kernel.stored_findings import finding_to_column, read_finding
from msgsvc_core.kernel.values import value_object
from msgsvc_webhooks.headers import dumped, loaded
from msgsvc_webhooks.models import (
    Attempt,
    Delivery,
    DeliveryQuery,
    DeliveryStatus,
    Webhook,
)

_COLUMNS = (
    "project_id, delivery_id, webhook_id, event_id, event, body, status, attempts, step,"
    " created_at_ms, first_attempt_at_ms, next_attempt_at_ms, finished_at_ms"
)
_COLUMN_NAMES = _COLUMNS.split(", ")
_KEY = ("project", "delivery")
_THIS = "project_id = :project_id AND delivery_id = :delivery_id"


async def insert_many(tx: Tx, deliveries: Sequence[Delivery]) -> None:
    rows = [{name: getattr(each, name) for name in _COLUMN_NAMES} for each in deliveries]
    await tx.insert_many("webhooks_deliveries", rows)


async def find(tx: Tx, project_id: str, delivery_id: str) -> Delivery | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM webhooks_deliveries WHERE {_THIS}",
        {"project_id": project_id, "delivery_id": delivery_id},
    )
    return None if row is None else _delivery(row)


async def find_in(tx: Tx, project_ids: Sequence[str], delivery_id: str) -> Delivery | None:
    """The delivery of one of several projects."""
    selected = ", ".join(f"d.{name}" for name in _COLUMN_NAMES)
    row = await tx.fetch_one(
        f"SELECT {selected} FROM {key_table(_KEY, tx.dialect)} CROSS JOIN webhooks_deliveries d"
        " WHERE d.project_id = keys.project AND d.delivery_id = keys.delivery",
        key_params([(project_id, delivery_id) for project_id in project_ids], tx.dialect),
    )
    return None if row is None else _delivery(row)


async def get_many(tx: Tx, project_id: str, delivery_ids: Sequence[str]) -> dict[str, Delivery]:
    """A project's deliveries by id."""
    these, params = any_of("delivery_id", "ids", delivery_ids, tx.dialect)
    statement = f"SELECT {_COLUMNS} FROM webhooks_deliveries WHERE project_id = :project_id AND "
    if tx.dialect == "postgresql":
        # One by one (OFFSET 0 keeps it so): where it has not looked at the table since it grew, it would
        # go through all that the project has.
        statement = (
            "SELECT d.* FROM unnest(:ids::text[]) AS keys (id)"
            f" CROSS JOIN LATERAL ({statement} delivery_id = keys.id OFFSET 0) AS d"
        )
    else:
        statement += these
    rows = await tx.fetch_all(statement, {"project_id": project_id, **params})
    return {row["delivery_id"]: _delivery(row) for row in rows}


async def list_page(
    tx: Tx, project_id: str, webhook_id: str, query: DeliveryQuery, *, ascending: bool = False
) -> list[Delivery]:
    """A webhook's deliveries, newest first, or oldest first; one more than the page size."""
    conditions = ["project_id = :project_id", "webhook_id = :webhook_id"]
    params: dict[str, Any] = {"project_id": project_id, "webhook_id": webhook_id}
    if query.stored_status is not None:
        assert query.stored_status in get_args(DeliveryStatus), "it stands in the SQL"
        conditions.append(f"status = '{query.stored_status}'")
        if query.stored_status != "delivered":
            # As the index says which rows are in it.
            conditions.append("status <> 'delivered'")
    if query.event is not None:
        # The failed ones are fewer; SQLite has no statistics that would show it.
        passive = tx.dialect == "sqlite" and query.status not in (None, "delivered")
        conditions.append(f"{'+' if passive else ''}event = :event")
        params["event"] = query.event
    if (after := query.begin("whd")) is not None:
        conditions.append(f"delivery_id {'>' if ascending else '<'} :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM webhooks_deliveries WHERE {' AND '.join(conditions)}"
        f" ORDER BY delivery_id {'ASC' if ascending else 'DESC'} LIMIT :most",
        {**params, "most": query.fetch_limit},
    )
    return [_delivery(row) for row in rows]


async def of_events(
    tx: Tx, webhook: Webhook, event_ids: Sequence[str]
) -> dict[str, list[tuple[str, DeliveryStatus]]]:
    """The deliveries of events to a webhook, by event: id and status."""
    these, params = any_of("event_id", "ids", event_ids, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT event_id, delivery_id, status FROM webhooks_deliveries"
        f" WHERE project_id = :project_id AND webhook_id = :webhook_id AND {these}",
        {"project_id": webhook.project_id, "webhook_id": webhook.webhook_id, **params},
    )
    found: dict[str, list[tuple[str, DeliveryStatus]]] = defaultdict(list)
    for row in rows:
        found[row["event_id"]].append((row["delivery_id"], row["status"]))
    return found


_PLAN_ANEW = "step = 0, first_attempt_at_ms = NULL, next_attempt_at_ms = :now_ms"


async def restart_plan(tx: Tx, project_id: str, delivery_id: str, now_ms: int) -> None:
    """Resets the retry plan of a pending delivery, whose job is made due now."""
    await tx.execute(
        f"UPDATE webhooks_deliveries SET {_PLAN_ANEW} WHERE {_THIS} AND status = 'pending'",
        {"project_id": project_id, "delivery_id": delivery_id, "now_ms": now_ms},
    )


async def restart(tx: Tx, project_id: str, delivery_ids: Sequence[str], now_ms: int) -> list[str]:
    """Makes finished deliveries pending, with a new retry plan and their previous attempts; returns the
    ids of those that were finished."""
    these, params = any_of("delivery_id", "ids", delivery_ids, tx.dialect)
    rows = await tx.fetch_all(
        f"UPDATE webhooks_deliveries SET status = 'pending', {_PLAN_ANEW}, finished_at_ms = NULL"
        f" WHERE project_id = :project_id AND {these} AND status <> 'pending'"
        " RETURNING delivery_id",
        {"project_id": project_id, "now_ms": now_ms, **params},
    )
    return sorted(row["delivery_id"] for row in rows)


async def attempts_of(
    tx: Tx, project_id: str, delivery_ids: Sequence[str]
) -> dict[str, list[Attempt]]:
    """The attempts by delivery, in order, without their headers."""
    if not delivery_ids:
        return {}
    ids, params = in_list("id", delivery_ids)
    rows = await tx.fetch_all(
        "SELECT delivery_id, started_at_ms, duration_ms, status_code, error, failure, answer"
        f" FROM webhooks_attempts WHERE project_id = :project_id AND delivery_id IN {ids}"
        " ORDER BY delivery_id, number",
        {"project_id": project_id, **params},
    )
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    for row in rows:
        attempts[row["delivery_id"]].append(_attempt(row))
    return attempts


async def attempts_with_headers(tx: Tx, project_id: str, delivery_id: str) -> list[Attempt]:
    """The attempts of one delivery, in order."""
    rows = await tx.fetch_all(
        "SELECT started_at_ms, duration_ms, status_code, error, failure, answer,"
        f" request_headers, response_headers FROM webhooks_attempts WHERE {_THIS} ORDER BY number",
        {"project_id": project_id, "delivery_id": delivery_id},
    )
    return [
        replace(
            _attempt(row),
            request_headers=loaded(row["request_headers"]),
            response_headers=loaded(row["response_headers"]),
        )
        for row in rows
    ]


@value_object
class Tried:
    """A delivery, a finished attempt, and the delivery's state after it."""

    delivery: Delivery
    attempt: Attempt
    status: DeliveryStatus
    step: int
    next_attempt_at_ms: int | None


#: What `record_attempts` writes of each delivery, by key.
_WRITTEN = (*_KEY, "started", "following")


async def record_attempts(tx: Tx, tried: Sequence[Tried], now_ms: int) -> bool:
    """Records finished attempts and their deliveries' new state; False, and do not commit, if an attempt of
    one has been recorded concurrently."""
    # What many have in common is written once: nearly all are delivered by their first attempt.
    alike: defaultdict[tuple[DeliveryStatus, int, int], list[Tried]] = defaultdict(list)
    for one in tried:
        alike[one.status, one.delivery.attempts, one.step].append(one)
    for (status, attempts, step), these in alike.items():
        changed = await tx.execute(
            "UPDATE webhooks_deliveries AS d SET status = :status, attempts = :attempts + 1,"
            " step = :step,"
            " first_attempt_at_ms = COALESCE(d.first_attempt_at_ms, CAST(keys.started AS BIGINT)),"
            " next_attempt_at_ms = CAST(keys.following AS BIGINT),"
            " finished_at_ms = CASE WHEN keys.following IS NULL THEN CAST(:now_ms AS BIGINT) END"
            f" FROM {key_table(_WRITTEN, tx.dialect)}"
            " WHERE d.project_id = keys.project AND d.delivery_id = keys.delivery"
            " AND d.attempts = :attempts",
            {
                **key_params([_written(one) for one in these], tx.dialect),
                "status": status,
                "attempts": attempts,
                "step": step,
                "now_ms": now_ms,
            },
        )
        if changed < len(these):
            return False
    await tx.insert_many(
        "webhooks_attempts",
        [
            {
                "project_id": one.delivery.project_id,
                "delivery_id": one.delivery.delivery_id,
                "number": one.delivery.attempts + 1,
                "started_at_ms": one.attempt.started_at_ms,
                "duration_ms": one.attempt.duration_ms,
                "status_code": one.attempt.status_code,
                "error": one.attempt.error,
                "failure": finding_to_column(one.attempt.failure),
                "answer": one.attempt.answer,
                "request_headers": dumped(one.attempt.request_headers),
                "response_headers": dumped(one.attempt.response_headers),
            }
            for one in tried
        ],
    )
    return True


def _written(one: Tried) -> tuple[str | None, ...]:
    delivery, following_ms = one.delivery, one.next_attempt_at_ms
    return (
        delivery.project_id,
        delivery.delivery_id,
        str(one.attempt.started_at_ms),
        None if following_ms is None else str(following_ms),
    )


async def finish(
    tx: Tx, deliveries: Sequence[Delivery], status: DeliveryStatus, now_ms: int
) -> None:
    """Ends deliveries without a further attempt."""
    if deliveries:
        await tx.execute(
            "UPDATE webhooks_deliveries AS d SET status = :status, next_attempt_at_ms = NULL,"
            f" finished_at_ms = :now_ms FROM {key_table(_KEY, tx.dialect)}"
            " WHERE d.project_id = keys.project AND d.delivery_id = keys.delivery",
            {
                **key_params(
                    [(each.project_id, each.delivery_id) for each in deliveries], tx.dialect
                ),
                "status": status,
                "now_ms": now_ms,
            },
        )


async def purge_attempts(
    tx: Tx, before_ms: int, most: int, *, table: str = "webhooks_attempts"
) -> int:
    """Deletes some attempts that started before that time, of all projects, from `table`, which may be a
    partition; returns how many."""
    old = limited_delete(table, "started_at_ms < :before_ms", tx.dialect)
    params = {"before_ms": before_ms, "most": most}
    return await tx.execute(f"DELETE FROM {table} WHERE {old}", params)


async def purge(tx: Tx, before_ms: int, most: int, *, table: str = "webhooks_deliveries") -> int:
    """Deletes some deliveries that started before that time, of all projects, from `table`, which may be a
    partition; returns how many."""
    old = limited_delete(table, "created_at_ms < :before_ms", tx.dialect)
    params = {"before_ms": before_ms, "most": most}
    return await tx.execute(f"DELETE FROM {table} WHERE {old}", params)


def _delivery(row: Row) -> Delivery:
    # Of `_COLUMNS`, in their order.
    return Delivery(*row)


def _attempt(row: Row) -> Attempt:
    return Attempt(
        started_at_ms=row["started_at_ms"],
        duration_ms=row["duration_ms"],
        status_code=row["status_code"],
        error=row["error"],
        failure=read_finding(row["failure"]),
        answer=row["answer"],
    )
