"""The SQL of authorization requests under way."""

from collections.abc import Collection

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import in_list
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_oidc.authorization.models import PendingRequest, RequestStatus
from msgsvc_oidc.protocol.authorize import AuthorizationRequest

_REQUEST = (
    "project_id, request_id, client_id, status, parameters, session_id, device_id, expires_at_ms"
)


async def insert_request(tx: Tx, pending: PendingRequest) -> None:
    await tx.insert(
        "oidc_requests",
        {
            "project_id": pending.project_id,
            "request_id": pending.request_id,
            "client_id": pending.client_id,
            "status": pending.status,
            "parameters": to_json(pending.request.to_dict()),
            "session_id": pending.session_id,
            "device_id": pending.device_id,
            "expires_at_ms": pending.expires_at_ms,
        },
    )


async def find_request(
    tx: Tx, project_id: str, request_id: str, *, now_ms: int
) -> PendingRequest | None:
    """A request that has not expired."""
    row = await tx.fetch_one(
        f"SELECT {_REQUEST} FROM oidc_requests WHERE project_id = :project_id"
        " AND request_id = :request_id AND expires_at_ms > :now_ms",
        {"project_id": project_id, "request_id": request_id, "now_ms": now_ms},
    )
    return None if row is None else _request(row)


async def move_request(
    tx: Tx,
    project_id: str,
    request_id: str,
    before: Collection[RequestStatus],
    after: RequestStatus,
    *,
    now_ms: int,
    session_id: str | None = None,
) -> PendingRequest | None:
    """Moves a request on, with the session if one is given. None if it is not in one of those states any
    more: of concurrent calls one gets it."""
    states, params = in_list("before", list(before))
    row = await tx.fetch_one(
        "UPDATE oidc_requests SET status = :after,"
        " session_id = COALESCE(:session_id, session_id)"
        f" WHERE project_id = :project_id AND request_id = :request_id AND status IN {states}"
        f" AND expires_at_ms > :now_ms RETURNING {_REQUEST}",
        {
            **params,
            "project_id": project_id,
            "request_id": request_id,
            "after": after,
            "session_id": session_id,
            "now_ms": now_ms,
        },
    )
    return None if row is None else _request(row)


async def use_pushed(
    tx: Tx, project_id: str, client_id: str, request_id: str, *, now_ms: int
) -> PendingRequest | None:
    """A request that this client has pushed, once: of concurrent calls one gets it."""
    row = await tx.fetch_one(
        "UPDATE oidc_requests SET status = 'ended' WHERE project_id = :project_id"
        " AND request_id = :request_id AND client_id = :client_id AND status = 'pushed'"
        f" AND expires_at_ms > :now_ms RETURNING {_REQUEST}",
        {
            "project_id": project_id,
            "client_id": client_id,
            "request_id": request_id,
            "now_ms": now_ms,
        },
    )
    return None if row is None else _request(row)


def _request(row: Row) -> PendingRequest:
    return PendingRequest(
        project_id=row["project_id"],
        request_id=row["request_id"],
        client_id=row["client_id"],
        status=row["status"],
        request=AuthorizationRequest.from_dict(from_json(row["parameters"])),
        session_id=row["session_id"],
        device_id=row["device_id"],
        expires_at_ms=row["expires_at_ms"],
    )
