"""The SQL of consents."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_oidc.consents.models import Consent


async def find_consent(
    tx: Tx, project_id: str, client_id: str, subscriber_id: str
) -> tuple[str, ...]:
    """The scopes that the person agreed to."""
    found = await tx.fetch_val(
        "SELECT scopes FROM oidc_consents WHERE project_id = :project_id AND client_id = :client_id"
        " AND subscriber_id = :subscriber_id",
        {"project_id": project_id, "client_id": client_id, "subscriber_id": subscriber_id},
    )
    return tuple((found or "").split())


async def put_consent(
    tx: Tx,
    project_id: str,
    client_id: str,
    subscriber_id: str,
    scopes: Sequence[str],
    *,
    now_ms: int,
) -> None:
    """Remembers the scopes; they take the place of those before."""
    await tx.execute(
        "INSERT INTO oidc_consents (project_id, client_id, subscriber_id, scopes, granted_at_ms)"
        " VALUES (:project_id, :client_id, :subscriber_id, :scopes, :now_ms)"
        " ON CONFLICT (project_id, client_id, subscriber_id)"
        " DO UPDATE SET scopes = excluded.scopes, granted_at_ms = excluded.granted_at_ms",
        {
            "project_id": project_id,
            "client_id": client_id,
            "subscriber_id": subscriber_id,
            "scopes": " ".join(scopes),
            "now_ms": now_ms,
        },
    )


async def list_consents(tx: Tx, project_id: str, subscriber_id: str, limit: int) -> list[Consent]:
    """What a person agreed to, by the clients' names."""
    rows = await tx.fetch_all(
        "SELECT c.client_id, a.name, c.scopes, c.granted_at_ms FROM oidc_consents c"
        " JOIN oidc_clients a ON a.project_id = c.project_id AND a.client_id = c.client_id"
        " WHERE c.project_id = :project_id AND c.subscriber_id = :subscriber_id"
        " ORDER BY a.name, c.client_id LIMIT :most",
        {"project_id": project_id, "subscriber_id": subscriber_id, "most": limit},
    )
    return [
        Consent(
            client_id=row["client_id"],
            client_name=row["name"],
            scopes=tuple(row["scopes"].split()),
            granted_at_ms=row["granted_at_ms"],
        )
        for row in rows
    ]


async def delete_consent(tx: Tx, project_id: str, client_id: str, subscriber_id: str) -> bool:
    """False if there is none."""
    return bool(
        await tx.execute(
            "DELETE FROM oidc_consents WHERE project_id = :project_id"
            " AND client_id = :client_id AND subscriber_id = :subscriber_id",
            {"project_id": project_id, "client_id": client_id, "subscriber_id": subscriber_id},
        )
    )
