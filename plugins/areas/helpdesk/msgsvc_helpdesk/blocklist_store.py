"""The SQL of the blocklist."""

from msgsvc_core.db import Tx
from msgsvc_helpdesk.models import Blocked

_COLUMNS = "project_id, subscriber_id, reason, created_at_ms"


async def find(tx: Tx, project_id: str, subscriber_id: str) -> Blocked | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM helpdesk_blocklist"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
        {"project_id": project_id, "subscriber_id": subscriber_id},
    )
    return None if row is None else Blocked(*row)


async def upsert(tx: Tx, blocked: Blocked) -> None:
    """Inserts an entry, or changes its reason."""
    await tx.execute(
        f"INSERT INTO helpdesk_blocklist ({_COLUMNS})"
        " VALUES (:project_id, :subscriber_id, :reason, :created_at_ms)"
        " ON CONFLICT (project_id, subscriber_id) DO UPDATE SET reason = :reason",
        {
            "project_id": blocked.project_id,
            "subscriber_id": blocked.subscriber_id,
            "reason": blocked.reason,
            "created_at_ms": blocked.created_at_ms,
        },
    )


async def delete(tx: Tx, project_id: str, subscriber_id: str) -> bool:
    """False if the subscriber was not blocked."""
    return bool(
        await tx.execute(
            "DELETE FROM helpdesk_blocklist"
            " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
            {"project_id": project_id, "subscriber_id": subscriber_id},
        )
    )


async def list_page(tx: Tx, project_id: str, after: str | None, limit: int) -> list[Blocked]:
    """Newest subscriber first; `after` is the last id of the previous page."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM helpdesk_blocklist WHERE project_id = :project_id"
        + (" AND subscriber_id < :after" if after is not None else "")
        + " ORDER BY subscriber_id DESC LIMIT :most",
        {"project_id": project_id, "most": limit} | ({} if after is None else {"after": after}),
    )
    return [Blocked(*row) for row in rows]
