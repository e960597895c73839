"""The SQL of the inbox: tickets with what was said last first, bounded counts, and what changed."""

from typing import Any

from msgsvc_core.db import Tx
from msgsvc_helpdesk.models import InboxQuery, Ticket
from msgsvc_helpdesk.store import read_ticket, select_tickets


async def list_page(
    tx: Tx, project_id: str, query: InboxQuery, after: tuple[int, str] | None, most: int
) -> list[Ticket]:
    """What was said last first; `after` is the time and the id of the last one of the page before."""
    conditions = ["t.project_id = :project_id", "t.merged_into IS NULL"]
    params: dict[str, Any] = {"project_id": project_id, "most": most}
    for name in ("status", "priority"):
        if (value := getattr(query, name)) is not None:
            conditions.append(f"t.{name} = :{name}")
            params[name] = value
    if query.assignee_id == "none":
        conditions.append("t.assignee_id IS NULL")
    elif query.assignee_id is not None:
        conditions.append("t.assignee_id = :assignee_id")
        params["assignee_id"] = query.assignee_id
    if query.tag is not None:
        conditions.append(
            "EXISTS (SELECT 1 FROM helpdesk_ticket_tags g WHERE g.project_id = t.project_id"
            " AND g.ticket_id = t.ticket_id AND g.tag = :tag)"
        )
        params["tag"] = query.tag
    if after is not None:
        conditions.append("(t.last_message_at_ms, t.ticket_id) < (:after_ms, :after_id)")
        params |= {"after_ms": after[0], "after_id": after[1]}
    rows = await tx.fetch_all(
        f"{select_tickets(tx.dialect)} WHERE {' AND '.join(conditions)}"
        " ORDER BY t.last_message_at_ms DESC, t.ticket_id DESC LIMIT :most",
        params,
    )
    return [read_ticket(row) for row in rows]


async def count_by(
    tx: Tx, project_id: str, overdue_since_ms: int, member_id: str | None, most: int
) -> dict[str, int]:
    """How many there are of each kind, none counted beyond `most`."""
    kinds = {
        **{status: f"status = '{status}'" for status in ("open", "pending", "snoozed")},
        "unassigned": "status = 'open' AND assignee_id IS NULL",
        "mine": "status = 'open' AND assignee_id = :member_id",
        "overdue": "status = 'open' AND waiting_since_ms <= :since_ms",
    }
    counted = ", ".join(
        "(SELECT COUNT(*) FROM (SELECT 1 AS one FROM helpdesk_tickets"
        f" WHERE project_id = :project_id AND {condition} LIMIT :most) AS {name}_rows) AS {name}"
        for name, condition in kinds.items()
    )
    params = {"project_id": project_id, "since_ms": overdue_since_ms, "most": most}
    row = await tx.fetch_one(f"SELECT {counted}", {**params, "member_id": member_id or ""})
    assert row is not None, "a SELECT of values has a row"
    return {name: int(row[name]) for name in kinds}


async def changed_at(tx: Tx, project_id: str) -> int:
    """When a ticket of the project was changed last; 0 where there is none."""
    found: int | None = await tx.fetch_val(
        "SELECT updated_at_ms FROM helpdesk_tickets WHERE project_id = :project_id"
        " ORDER BY updated_at_ms DESC LIMIT 1",
        {"project_id": project_id},
    )
    return found or 0
