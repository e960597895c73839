"""The SQL of requests of devices."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import in_list
from msgsvc_oidc.device.models import DeviceRequest
from msgsvc_oidc.protocol.authorize import Session

_DEVICE = (
    "project_id, request_id, client_id, status, scopes, acr_values, interval_s, expires_at_ms,"
    " subscriber_id, auth_time_ms, method, proves"
)


async def insert_device(
    tx: Tx, device: DeviceRequest, user_code_hash: str, *, created_at_ms: int
) -> bool:
    """False if a pending request of the project has the same code."""
    return bool(
        await tx.execute(
            "INSERT INTO oidc_device_requests (project_id, request_id, client_id, status, scopes,"
            " acr_values, user_code_hash, interval_s, created_at_ms, expires_at_ms)"
            " VALUES (:project_id, :request_id, :client_id, :status, :scopes, :acr_values,"
            " :user_code_hash, :interval_s, :created_at_ms, :expires_at_ms)"
            " ON CONFLICT (project_id, user_code_hash) DO NOTHING",
            {
                "project_id": device.project_id,
                "request_id": device.request_id,
                "client_id": device.client_id,
                "status": device.status,
                "scopes": " ".join(device.scopes),
                "acr_values": " ".join(device.acr_values),
                "user_code_hash": user_code_hash,
                "interval_s": device.interval_s,
                "created_at_ms": created_at_ms,
                "expires_at_ms": device.expires_at_ms,
            },
        )
    )


async def find_device(tx: Tx, project_id: str, request_id: str) -> DeviceRequest | None:
    row = await tx.fetch_one(
        f"SELECT {_DEVICE} FROM oidc_device_requests"
        " WHERE project_id = :project_id AND request_id = :request_id",
        {"project_id": project_id, "request_id": request_id},
    )
    return None if row is None else _device(row)


async def find_by_code(
    tx: Tx, project_id: str, user_code_hashes: Sequence[str], *, now_ms: int
) -> DeviceRequest | None:
    """The pending request with one of the hashes."""
    hashes, params = in_list("hashes", user_code_hashes)
    row = await tx.fetch_one(
        f"SELECT {_DEVICE} FROM oidc_device_requests WHERE project_id = :project_id"
        f" AND user_code_hash IN {hashes} AND status = 'pending' AND expires_at_ms > :now_ms",
        {**params, "project_id": project_id, "now_ms": now_ms},
    )
    return None if row is None else _device(row)


async def approve(
    tx: Tx, project_id: str, request_id: str, session: Session, *, now_ms: int
) -> bool:
    """Its code leads nowhere from now on. False unless it is pending: of concurrent calls one is true."""
    return bool(
        await tx.execute(
            "UPDATE oidc_device_requests SET status = 'approved', user_code_hash = NULL,"
            " subscriber_id = :subscriber_id, auth_time_ms = :auth_time_ms, method = :method,"
            " proves = :proves"
            " WHERE project_id = :project_id AND request_id = :request_id"
            " AND status = 'pending' AND expires_at_ms > :now_ms",
            {
                "project_id": project_id,
                "request_id": request_id,
                "subscriber_id": session.subscriber_id,
                "auth_time_ms": session.auth_time_ms,
                "method": session.method,
                "proves": session.proves,
                "now_ms": now_ms,
            },
        )
    )


async def deny(tx: Tx, project_id: str, request_id: str, *, now_ms: int) -> bool:
    """As `approve`, for a person who refuses."""
    return bool(
        await tx.execute(
            "UPDATE oidc_device_requests SET status = 'denied', user_code_hash = NULL"
            " WHERE project_id = :project_id AND request_id = :request_id"
            " AND status = 'pending' AND expires_at_ms > :now_ms",
            {"project_id": project_id, "request_id": request_id, "now_ms": now_ms},
        )
    )


def _device(row: Row) -> DeviceRequest:
    fields = {column: row[column] for column in _DEVICE.split(", ")}
    lists = {name: tuple(fields[name].split()) for name in ("scopes", "acr_values")}
    return DeviceRequest(**{**fields, **lists})
