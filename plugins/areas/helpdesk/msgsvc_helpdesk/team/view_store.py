"""The SQL of who has seen which ticket."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of
from msgsvc_helpdesk.team.models import Viewer


async def mark_seen(
    tx: Tx, project_id: str, ticket_id: str, viewer_id: str, now_ms: int, typing: bool
) -> bool:
    """False for a ticket that is not there. Who types is not taken for silent by another window."""
    written = await tx.execute(
        "INSERT INTO helpdesk_views (project_id, viewer_id, ticket_id, seen_at_ms, typed_at_ms)"
        " SELECT project_id, :viewer_id, ticket_id, :now_ms, :typed_ms FROM helpdesk_tickets"
        " WHERE project_id = :project_id AND ticket_id = :ticket_id"
        " ON CONFLICT (project_id, viewer_id, ticket_id) DO UPDATE SET seen_at_ms = :now_ms,"
        " typed_at_ms = COALESCE(:typed_ms, helpdesk_views.typed_at_ms)",
        {
            "project_id": project_id,
            "ticket_id": ticket_id,
            "viewer_id": viewer_id,
            "now_ms": now_ms,
            "typed_ms": now_ms if typing else None,
        },
    )
    return bool(written)


async def list_since(tx: Tx, project_id: str, since_ms: int, typed_since_ms: int) -> list[Viewer]:
    """Who was seen in tickets since then, last seen first."""
    rows = await tx.fetch_all(
        "SELECT ticket_id, viewer_id, seen_at_ms, typed_at_ms FROM helpdesk_views"
        " WHERE project_id = :project_id AND seen_at_ms > :since_ms"
        " ORDER BY seen_at_ms DESC, viewer_id",
        {"project_id": project_id, "since_ms": since_ms},
    )
    return [
        Viewer(
            row["ticket_id"],
            row["viewer_id"],
            row["seen_at_ms"],
            is_typing=(row["typed_at_ms"] or 0) > typed_since_ms,
        )
        for row in rows
    ]


async def seen(
    tx: Tx, project_id: str, viewer_id: str, ticket_ids: Sequence[str]
) -> dict[str, int]:
    """When the viewer last had each of these tickets open; without those that they never had."""
    these, params = any_of("ticket_id", "tickets", ticket_ids, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT ticket_id, seen_at_ms FROM helpdesk_views"
        f" WHERE project_id = :project_id AND viewer_id = :viewer_id AND {these}",
        {"project_id": project_id, "viewer_id": viewer_id, **params},
    )
    return {row["ticket_id"]: row["seen_at_ms"] for row in rows}


async def forget(tx: Tx, project_id: str, viewer_id: str) -> None:
    """Deletes what a person has seen."""
    await tx.execute(
        "DELETE FROM helpdesk_views WHERE project_id = :project_id AND viewer_id = :viewer_id",
        {"project_id": project_id, "viewer_id": viewer_id},
    )
