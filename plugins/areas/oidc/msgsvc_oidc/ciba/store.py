"""The SQL of backchannel requests."""

from msgsvc_core.db import Tx
from msgsvc_oidc.ciba.models import AskedRequest

_REQUEST = (
    "project_id, request_id, client_id, status, scopes, interval_s, expires_at_ms, subscriber_id,"
    " session_id"
)


async def insert_request(tx: Tx, request: AskedRequest, *, created_at_ms: int) -> None:
    fields = {column: getattr(request, column) for column in _REQUEST.split(", ")}
    stored = {**fields, "scopes": " ".join(request.scopes), "created_at_ms": created_at_ms}
    await tx.insert("oidc_ciba_requests", stored)


async def find_request(tx: Tx, project_id: str, request_id: str) -> AskedRequest | None:
    row = await tx.fetch_one(
        f"SELECT {_REQUEST} FROM oidc_ciba_requests"
        " WHERE project_id = :project_id AND request_id = :request_id",
        {"project_id": project_id, "request_id": request_id},
    )
    if row is None:
        return None
    fields = {column: row[column] for column in _REQUEST.split(", ")}
    return AskedRequest(**{**fields, "scopes": tuple(fields["scopes"].split())})
