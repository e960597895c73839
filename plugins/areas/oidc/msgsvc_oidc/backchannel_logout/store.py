"""The SQL of deliveries of logout tokens."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.kernel.stored_findings import finding_to_column, read_finding
from msgsvc_oidc.backchannel_logout.models import DeliveryStatus, LogoutDelivery, SignedOut

_DELIVERY = (
    "project_id, delivery_id, client_id, subject, session_id, status, attempts, status_code, error,"
    " failure, created_at_ms, next_attempt_at_ms"
)


async def clients_of_session(tx: Tx, project_id: str, session_id: str) -> list[SignedOut]:
    """The clients with a URL for logout tokens that a session has signed a person in to."""
    return await _clients(tx, project_id, "g.session_id = :of", session_id)


async def clients_of_person(
    tx: Tx, project_id: str, subscriber_id: str, client_id: str | None = None
) -> list[SignedOut]:
    """The clients with a URL for logout tokens that a person has signed in to, or that one if it is such."""
    named = "" if client_id is None else " AND g.client_id = :client_id"
    where = f"g.subscriber_id = :of{named}"
    return await _clients(tx, project_id, where, subscriber_id, client_id)


async def insert_delivery(tx: Tx, delivery: LogoutDelivery) -> None:
    row = {column: getattr(delivery, column) for column in _DELIVERY.split(", ")}
    row["failure"] = finding_to_column(delivery.failure)
    await tx.insert("oidc_logout_deliveries", row)


async def find_delivery(tx: Tx, project_id: str, delivery_id: str) -> LogoutDelivery | None:
    row = await tx.fetch_one(
        f"SELECT {_DELIVERY} FROM oidc_logout_deliveries"
        " WHERE project_id = :project_id AND delivery_id = :delivery_id",
        {"project_id": project_id, "delivery_id": delivery_id},
    )
    return None if row is None else _delivery(row)


async def record_attempt(
    tx: Tx,
    delivery: LogoutDelivery,
    status: DeliveryStatus,
    *,
    status_code: int | None,
    failure: Finding | None,
    next_attempt_at_ms: int | None,
) -> bool:
    """Writes how the next attempt ended, and after the last one deletes the subject. False if another process
    has written it."""
    forgets = "" if status == "pending" else ", subject = ''"
    return bool(
        await tx.execute(
            "UPDATE oidc_logout_deliveries SET status = :status, attempts = attempts + 1,"
            " status_code = :status_code, error = :error, failure = :failure,"
            f" next_attempt_at_ms = :next_attempt_at_ms{forgets} WHERE project_id = :project_id"
            " AND delivery_id = :delivery_id AND status = 'pending' AND attempts = :attempts",
            {
                "project_id": delivery.project_id,
                "delivery_id": delivery.delivery_id,
                "attempts": delivery.attempts,
                "status": status,
                "status_code": status_code,
                **_failure(failure),
                "next_attempt_at_ms": next_attempt_at_ms,
            },
        )
    )


async def fail(tx: Tx, project_id: str, delivery_id: str, failure: Finding) -> None:
    """Ends a delivery that can't be made, as `record_attempt`."""
    await tx.execute(
        "UPDATE oidc_logout_deliveries SET status = 'failed', error = :error, failure = :failure,"
        " subject = '',"
        " next_attempt_at_ms = NULL WHERE project_id = :project_id AND delivery_id = :delivery_id"
        " AND status = 'pending'",
        {"project_id": project_id, "delivery_id": delivery_id, **_failure(failure)},
    )


async def forget_subjects(tx: Tx, project_id: str) -> None:
    """Removes the subjects from deliveries that ended under a version that kept them."""
    await tx.execute(
        "UPDATE oidc_logout_deliveries SET subject = ''"
        " WHERE project_id = :project_id AND status <> 'pending' AND subject <> ''",
        {"project_id": project_id},
    )


async def list_deliveries(
    tx: Tx, project_id: str, client_id: str, after: str | None, limit: int
) -> Sequence[LogoutDelivery]:
    """Newest first; `after` is the last `delivery_id` of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_DELIVERY} FROM oidc_logout_deliveries"
        " WHERE project_id = :project_id AND client_id = :client_id"
        + (" AND delivery_id < :after" if after is not None else "")
        + " ORDER BY delivery_id DESC LIMIT :most",
        {"project_id": project_id, "client_id": client_id, "after": after, "most": limit},
    )
    return [_delivery(row) for row in rows]


async def _clients(
    tx: Tx, project_id: str, where: str, of: str, client_id: str | None = None
) -> list[SignedOut]:
    rows = await tx.fetch_all(
        "SELECT DISTINCT g.client_id, g.subject FROM oidc_grants g JOIN oidc_clients c"
        " ON c.project_id = g.project_id AND c.client_id = g.client_id"
        f" WHERE g.project_id = :project_id AND {where}"
        " AND c.backchannel_logout_uri IS NOT NULL ORDER BY g.client_id, g.subject",
        {"project_id": project_id, "of": of, "client_id": client_id},
    )
    return [
        SignedOut(
            project_id=project_id,
            client_id=row["client_id"],
            subject=row["subject"],
            session_id=None,
        )
        for row in rows
    ]


def _delivery(row: Row) -> LogoutDelivery:
    values = {column: row[column] for column in _DELIVERY.split(", ")}
    return LogoutDelivery(**values | {"failure": read_finding(row["failure"])})


def _failure(failure: Finding | None) -> dict[str, str | None]:
    error = "" if failure is None else failure.reason
    return {"error": error, "failure": finding_to_column(failure)}
