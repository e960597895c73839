"""The SQL of the journal of sign-ins."""

from msgsvc_core.db import Row, Tx
from msgsvc_oidc.journal.models import Entry

_ENTRY = "project_id, entry_id, client_id, flow, outcome, detail, subscriber_id, at_ms"


async def insert_entry(tx: Tx, entry: Entry) -> None:
    await tx.insert(
        "oidc_sign_ins", {column: getattr(entry, column) for column in _ENTRY.split(", ")}
    )


async def list_entries(
    tx: Tx, project_id: str, client_id: str, after: str | None, limit: int
) -> list[Entry]:
    """Newest first; `after` is the last `entry_id` of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_ENTRY} FROM oidc_sign_ins"
        " WHERE project_id = :project_id AND client_id = :client_id"
        + (" AND entry_id < :after" if after is not None else "")
        + " ORDER BY entry_id DESC LIMIT :most",
        {"project_id": project_id, "client_id": client_id, "after": after, "most": limit},
    )
    return [_entry(row) for row in rows]


async def forget_person(tx: Tx, project_id: str, subscriber_id: str) -> None:
    """Keeps that somebody signed in, and no longer who."""
    await tx.execute(
        "UPDATE oidc_sign_ins SET subscriber_id = NULL"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
        {"project_id": project_id, "subscriber_id": subscriber_id},
    )


def _entry(row: Row) -> Entry:
    return Entry(**{column: row[column] for column in _ENTRY.split(", ")})
