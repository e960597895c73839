"""The SQL of initial access tokens."""

from msgsvc_core.db import Row, Tx
from msgsvc_oidc.registration.models import RegistrationToken

_TOKEN = "project_id, token_id, name, digest, uses_left, expires_at_ms, created_at_ms"  # noqa: S105 - columns


async def insert_token(tx: Tx, token: RegistrationToken) -> None:
    await tx.insert(
        "oidc_registration_tokens",
        {column: getattr(token, column) for column in _TOKEN.split(", ")},
    )


async def use_token(tx: Tx, project_id: str, digest: str, *, now_ms: int) -> str | None:
    """Takes one of the token's uses; returns its id. None for one that is unknown, expired or used up: of
    concurrent calls no more get it than it has uses."""
    found: str | None = await tx.fetch_val(
        "UPDATE oidc_registration_tokens SET uses_left = uses_left - 1"
        " WHERE project_id = :project_id AND digest = :digest"
        " AND (uses_left IS NULL OR uses_left > 0)"
        " AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms) RETURNING token_id",
        {"project_id": project_id, "digest": digest, "now_ms": now_ms},
    )
    return found


async def count_tokens(tx: Tx, project_id: str) -> int:
    return int(
        await tx.fetch_val(
            "SELECT count(*) FROM oidc_registration_tokens WHERE project_id = :project_id",
            {"project_id": project_id},
        )
    )


async def list_tokens(
    tx: Tx, project_id: str, after: str | None, limit: int
) -> list[RegistrationToken]:
    """Newest first; `after` is the last `token_id` of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_TOKEN} FROM oidc_registration_tokens WHERE project_id = :project_id"
        + (" AND token_id < :after" if after is not None else "")
        + " ORDER BY token_id DESC LIMIT :most",
        {"project_id": project_id, "after": after, "most": limit},
    )
    return [_token(row) for row in rows]


async def delete_token(tx: Tx, project_id: str, token_id: str) -> bool:
    return bool(
        await tx.execute(
            "DELETE FROM oidc_registration_tokens"
            " WHERE project_id = :project_id AND token_id = :token_id",
            {"project_id": project_id, "token_id": token_id},
        )
    )


def _token(row: Row) -> RegistrationToken:
    return RegistrationToken(**{column: row[column] for column in _TOKEN.split(", ")})
