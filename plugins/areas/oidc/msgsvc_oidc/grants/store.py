"""The SQL of grants and of pairwise subjects."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_oidc.protocol.token import Grant

#: A grant's project and id.
Key = tuple[str, str]

_KEY = ("project_id", "grant_id")
_GRANT = (
    "project_id, grant_id, client_id, subscriber_id, subject, scopes, auth_time_ms, method, proves,"
    " session_id, nonce, redirect_uri, code_challenge, code_expires_at_ms, code_used_at_ms, refresh_number,"
    " refreshed_at_ms, refresh_expires_at_ms, revoked_at_ms, created_at_ms"
)
_GRANT_IN_JOIN = ", ".join(f"g.{column}" for column in _GRANT.split(", "))


async def insert_grant(tx: Tx, grant: Grant, ends_at_ms: int) -> None:
    """`ends_at_ms`: when nothing refers to it any more."""
    await tx.insert(
        "oidc_grants",
        {
            "project_id": grant.project_id,
            "grant_id": grant.grant_id,
            "client_id": grant.client_id,
            "subscriber_id": grant.subscriber_id,
            "subject": grant.subject,
            "scopes": " ".join(grant.scopes),
            "offline": grant.is_offline,
            "auth_time_ms": grant.auth_time_ms,
            "method": grant.method,
            "proves": grant.proves,
            "session_id": grant.session_id,
            "nonce": grant.nonce,
            "redirect_uri": grant.redirect_uri,
            "code_challenge": grant.code_challenge,
            "code_expires_at_ms": grant.code_expires_at_ms,
            "refresh_number": grant.refresh_number,
            "refresh_expires_at_ms": grant.refresh_expires_at_ms,
            "created_at_ms": grant.created_at_ms,
            "ends_at_ms": ends_at_ms,
        },
    )


async def find_grants(tx: Tx, keys: Sequence[Key]) -> dict[Key, Grant]:
    """Existing grants by their key. `keys` is not empty."""
    rows = await tx.fetch_all(
        f"SELECT {_GRANT_IN_JOIN} FROM {key_table(_KEY, tx.dialect)} CROSS JOIN oidc_grants g"
        " WHERE g.project_id = keys.project_id AND g.grant_id = keys.grant_id",
        key_params(keys, tx.dialect),
    )
    return {(row["project_id"], row["grant_id"]): _grant(row) for row in rows}


async def use_codes(
    tx: Tx, keys: Sequence[Key], *, now_ms: int, refresh_until_ms: int
) -> dict[Key, Grant]:
    """Marks codes as used, and gives offline grants their first refresh token; returns the grants.

    Of concurrent calls with the same code one gets its grant. `keys` is not empty.
    """
    rows = await tx.fetch_all(
        "UPDATE oidc_grants SET code_used_at_ms = :now_ms,"
        " refresh_number = CASE WHEN offline THEN 1 ELSE 0 END,"
        " refresh_expires_at_ms = CASE WHEN offline THEN CAST(:refresh_until_ms AS BIGINT) END"
        f" WHERE {_of_keys(tx)} AND code_used_at_ms IS NULL AND revoked_at_ms IS NULL"
        f" AND code_expires_at_ms > :now_ms RETURNING {_GRANT}",
        {
            **key_params(keys, tx.dialect),
            "now_ms": now_ms,
            "refresh_until_ms": refresh_until_ms,
        },
    )
    return {(row["project_id"], row["grant_id"]): _grant(row) for row in rows}


async def release_codes(tx: Tx, keys: Sequence[Key]) -> None:
    """Makes codes valid again that `use_codes` marked in the same transaction. `keys` is not empty."""
    await tx.execute(
        "UPDATE oidc_grants SET code_used_at_ms = NULL, refresh_number = 0,"
        f" refresh_expires_at_ms = NULL WHERE {_of_keys(tx)}",
        key_params(keys, tx.dialect),
    )


async def rotate(
    tx: Tx, tokens: Sequence[tuple[str, str, str]], *, now_ms: int, idle_ms: int, most_ms: int
) -> dict[Key, Grant]:
    """Makes the next refresh token of grants the valid one; returns the grants.

    `tokens` are project, grant and the number presented; of concurrent calls with the same one gets its
    grant. A refresh token lives `idle_ms`, and at most until `most_ms` after the grant was made. `tokens` is
    not empty.
    """
    table = key_table(("project_id", "grant_id", "number"), tx.dialect)
    until = (
        "CASE WHEN created_at_ms + CAST(:most_ms AS BIGINT) < CAST(:idle_until_ms AS BIGINT)"
        " THEN created_at_ms + CAST(:most_ms AS BIGINT) ELSE CAST(:idle_until_ms AS BIGINT) END"
    )
    rows = await tx.fetch_all(
        "UPDATE oidc_grants SET refresh_number = refresh_number + 1, refreshed_at_ms = :now_ms,"
        f" refresh_expires_at_ms = {until}, ends_at_ms = {until}"
        " WHERE (project_id, grant_id, CAST(refresh_number AS TEXT)) IN"
        f" (SELECT keys.project_id, keys.grant_id, keys.number FROM {table})"
        f" AND revoked_at_ms IS NULL AND refresh_expires_at_ms > :now_ms RETURNING {_GRANT}",
        {
            **key_params(tokens, tx.dialect),
            "now_ms": now_ms,
            "idle_until_ms": now_ms + idle_ms,
            "most_ms": most_ms,
        },
    )
    return {(row["project_id"], row["grant_id"]): _grant(row) for row in rows}


async def revoke(tx: Tx, keys: Sequence[Key], reason: str, *, now_ms: int) -> None:
    """Ends grants with all their tokens. `keys` is not empty."""
    await tx.execute(
        "UPDATE oidc_grants SET revoked_at_ms = :now_ms, revoked_reason = :reason"
        f" WHERE {_of_keys(tx)} AND revoked_at_ms IS NULL",
        {**key_params(keys, tx.dialect), "now_ms": now_ms, "reason": reason},
    )


async def revoke_of_person(
    tx: Tx, project_id: str, client_id: str, subscriber_id: str, reason: str, *, now_ms: int
) -> int:
    """Ends all grants of a person for a client; returns how many."""
    return await tx.execute(
        "UPDATE oidc_grants SET revoked_at_ms = :now_ms, revoked_reason = :reason"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
        " AND client_id = :client_id AND revoked_at_ms IS NULL",
        {
            "project_id": project_id,
            "client_id": client_id,
            "subscriber_id": subscriber_id,
            "reason": reason,
            "now_ms": now_ms,
        },
    )


async def revoke_of_session(
    tx: Tx, project_id: str, session_id: str, reason: str, *, now_ms: int
) -> None:
    """Ends the grants of a session: those without offline access, and those whose code was not used."""
    await tx.execute(
        "UPDATE oidc_grants SET revoked_at_ms = :now_ms, revoked_reason = :reason"
        " WHERE project_id = :project_id AND session_id = :session_id AND revoked_at_ms IS NULL"
        " AND (NOT offline OR code_used_at_ms IS NULL)",
        {"project_id": project_id, "session_id": session_id, "reason": reason, "now_ms": now_ms},
    )


async def delete_of_person(tx: Tx, project_id: str, subscriber_id: str) -> None:
    await tx.execute(
        "DELETE FROM oidc_grants WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
        {"project_id": project_id, "subscriber_id": subscriber_id},
    )


async def insert_subject(
    tx: Tx, project_id: str, sector: str, subscriber_id: str, subject: str
) -> None:
    """Keeps the subject that there is already."""
    await tx.execute(
        "INSERT INTO oidc_subjects (project_id, sector, subscriber_id, subject)"
        " VALUES (:project_id, :sector, :subscriber_id, :subject) ON CONFLICT DO NOTHING",
        {
            "project_id": project_id,
            "sector": sector,
            "subscriber_id": subscriber_id,
            "subject": subject,
        },
    )


async def find_subject(tx: Tx, project_id: str, sector: str, subscriber_id: str) -> str | None:
    found: str | None = await tx.fetch_val(
        "SELECT subject FROM oidc_subjects WHERE project_id = :project_id AND sector = :sector"
        " AND subscriber_id = :subscriber_id",
        {"project_id": project_id, "sector": sector, "subscriber_id": subscriber_id},
    )
    return found


async def find_subscriber(tx: Tx, project_id: str, sector: str, subject: str) -> str | None:
    found: str | None = await tx.fetch_val(
        "SELECT subscriber_id FROM oidc_subjects WHERE project_id = :project_id AND sector = :sector"
        " AND subject = :subject",
        {"project_id": project_id, "sector": sector, "subject": subject},
    )
    return found


def _of_keys(tx: Tx) -> str:
    table = key_table(_KEY, tx.dialect)
    return f"(project_id, grant_id) IN (SELECT keys.project_id, keys.grant_id FROM {table})"


def _grant(row: Row) -> Grant:
    fields = {column: row[column] for column in _GRANT.split(", ")}
    return Grant(**{**fields, "scopes": tuple(fields["scopes"].split())})
