"""The SQL of requests for sign-in pages, and of what plugins ask about their sessions."""

from msgsvc_auth.page_requests import PageRequest
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import limited_delete
from msgsvc_core.security import digest

_REQUEST = (
    "project_id, request_id, source, source_id, requester_name, requester_url, return_url, state, lang,"
    " channel, number_matching, must_prove, created_at_ms, expires_at_ms"
)


async def insert_request(tx: Tx, request: PageRequest) -> None:
    row = {column: getattr(request, column) for column in _REQUEST.split(", ")}
    row["must_prove"] = " ".join(request.must_prove)
    await tx.insert("auth_requests", {**row, "token_digest": digest(request.token)})


async def find_request(tx: Tx, token: str, *, expired_after_ms: int) -> PageRequest | None:
    """In any project, for the page's address has only the token; None if it expired before that."""
    row = await tx.fetch_one(
        f"SELECT {_REQUEST} FROM auth_requests"
        " WHERE token_digest = :token_digest AND expires_at_ms > :expired_after_ms",
        {"token_digest": digest(token), "expired_after_ms": expired_after_ms},
    )
    return None if row is None else _as_request(row, token)


async def purge_requests(tx: Tx, expired_before_ms: int, limit: int) -> int:
    """Deletes some expired requests of all projects; returns how many."""
    old = limited_delete("auth_requests", "expires_at_ms < :expired_before_ms", tx.dialect)
    params = {"expired_before_ms": expired_before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM auth_requests WHERE {old}", params)


def _as_request(row: Row, token: str) -> PageRequest:
    fields = {column: row[column] for column in _REQUEST.split(", ")}
    # SQLite keeps 0 and 1.
    fields["number_matching"] = bool(fields["number_matching"])
    fields["must_prove"] = tuple(fields["must_prove"].split())
    return PageRequest(token=token, **fields)
