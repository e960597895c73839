"""The SQL of consents."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import key_params, key_table
from msgsvc_oidc.consents.models import Consent
from msgsvc_oidc.protocol.clients import Scope


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


async def list_consents(tx: Tx, people: Sequence[tuple[str, str]], limit: int) -> list[Consent]:
    """What people, each a project and a subscriber, agreed to, by the clients' names."""
    if not people:
        return []
    rows = await tx.fetch_all(
        "SELECT c.project_id, c.subscriber_id, c.client_id, a.name, c.scopes, c.granted_at_ms"
        f" FROM {key_table(('project_id', 'subscriber_id'), tx.dialect)} CROSS JOIN oidc_consents c"
        " JOIN oidc_clients a ON a.project_id = c.project_id AND a.client_id = c.client_id"
        " WHERE c.project_id = keys.project_id AND c.subscriber_id = keys.subscriber_id"
        " ORDER BY a.name, c.client_id LIMIT :most",
        {**key_params(people, tx.dialect), "most": limit},
    )
    return [
        Consent(
            project_id=row["project_id"],
            subscriber_id=row["subscriber_id"],
            client_id=row["client_id"],
            client_name=row["name"],
            scopes=tuple(row["scopes"].split()),
            granted_at_ms=row["granted_at_ms"],
        )
        for row in rows
    ]


async def delete_consent(
    tx: Tx, project_id: str, client_id: str, subscriber_id: str
) -> tuple[str, ...] | None:
    """The scopes that it held; None if there is none."""
    scopes: str | None = await tx.fetch_val(
        "DELETE FROM oidc_consents WHERE project_id = :project_id"
        " AND client_id = :client_id AND subscriber_id = :subscriber_id RETURNING scopes",
        {"project_id": project_id, "client_id": client_id, "subscriber_id": subscriber_id},
    )
    return None if scopes is None else tuple(scopes.split())


async def some_client_may(
    tx: Tx, project_id: str, subscriber_id: str, scope: Scope, *, now_ms: int
) -> bool:
    """Whether a client has the scope of this person: by consent, or by a grant: clients of the project
    itself have it without consent."""
    found = await tx.fetch_val(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM oidc_consents WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id AND ' ' || scopes || ' ' LIKE :wanted)"
        " OR EXISTS (SELECT 1 FROM oidc_grants WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id AND ' ' || scopes || ' ' LIKE :wanted"
        " AND revoked_at_ms IS NULL AND ends_at_ms > :now_ms)",
        {
            "project_id": project_id,
            "subscriber_id": subscriber_id,
            "wanted": f"% {scope} %",
            "now_ms": now_ms,
        },
    )
    return found is not None
