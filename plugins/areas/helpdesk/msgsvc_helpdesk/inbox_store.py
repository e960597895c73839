"""The SQL of the inbox: tickets by latest activity, bounded counts, and changes."""

from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import Dialect, array_param, in_array
from msgsvc_helpdesk.models import DueWithin, InboxQuery, Status, Ticket
from msgsvc_helpdesk.store import read_ticket, select_tickets

#: Tickets of a tag that are looked up one by one, if fewer have it. Where more do, they are met on the way
#: along the list.
FEW_TAGGED = 100

#: Statuses of tickets that need work, a small part of all.
WAITING: tuple[Status, ...] = ("open", "pending", "snoozed")
_ALL: tuple[Status, ...] = (*WAITING, "closed")


async def list_page(
    tx: Tx,
    project_id: str,
    query: InboxQuery,
    after: tuple[int, str] | None,
    limit: int,
    due: DueWithin | None = None,
) -> list[Ticket]:
    """Latest activity first; `after` is the time and the id of the last one of the previous page. `due` are
    the times of `query.due`."""
    if query.assignee_id is None or query.status is not None or due is not None:
        return await _list(tx, project_id, query, after, limit, due)
    # The tickets of each agent are in order within a status.
    found = []
    for status in _ALL:
        of_status = query.model_copy(update={"status": status})
        found += await _list(tx, project_id, of_status, after, limit)
    return sorted(found, key=lambda one: (one.last_message_at_ms, one.ticket_id), reverse=True)[
        :limit
    ]


async def _list(
    tx: Tx,
    project_id: str,
    query: InboxQuery,
    after: tuple[int, str] | None,
    limit: int,
    due: DueWithin | None = None,
) -> list[Ticket]:
    conditions, params = _filtered(query, tx.dialect)
    order = "t.last_message_at_ms DESC, t.ticket_id DESC"
    if due is not None:
        # What is due is few: SQLite is kept from the list's own order, and from the status.
        if tx.dialect == "sqlite":
            conditions = [each.replace("t.status =", "+t.status =") for each in conditions]
        conditions.append("t.due_at_ms > :due_after_ms AND t.due_at_ms <= :due_by_ms")
        params |= {"due_after_ms": due[0], "due_by_ms": due[1]}
        order = "+t.last_message_at_ms DESC, t.ticket_id DESC"
    if query.tag is not None:
        tagged = await _tagged(tx, project_id, query.tag, FEW_TAGGED)
        if len(tagged) < FEW_TAGGED:
            conditions.append(in_array("t.ticket_id", "tagged", tx.dialect))
            params["tagged"] = array_param(tagged, tx.dialect)
            # SQLite is kept from the list's own order, along which it would look for them.
            order = "+t.last_message_at_ms DESC, t.ticket_id DESC"
    if after is not None:
        conditions.append("(t.last_message_at_ms, t.ticket_id) < (:after_ms, :after_id)")
        params |= {"after_ms": after[0], "after_id": after[1]}
    rows = await tx.fetch_all(
        f"{select_tickets(tx.dialect)} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :most",
        {**params, "project_id": project_id, "most": limit},
    )
    return [read_ticket(row) for row in rows]


def _filtered(query: InboxQuery, dialect: Dialect) -> tuple[list[str], dict[str, Any]]:
    """The conditions, of which the one leads that leaves the fewest as a rule."""
    conditions = ["t.project_id = :project_id", "t.merged_into IS NULL"]
    params: dict[str, Any] = {}
    # An index has the tickets of a priority that is not the usual one.
    by_priority = query.priority not in {None, "normal"} and query.status not in WAITING
    if by_priority:
        conditions.append("t.priority <> 'normal'")
    if query.status is not None:
        # SQLite has no statistics: `+` keeps it from going along all that is closed.
        aside = "+" if by_priority and dialect == "sqlite" else ""
        conditions.append(f"{aside}t.status = :status")
        params["status"] = query.status
    if query.priority is not None:
        conditions.append("t.priority = :priority")
        params["priority"] = query.priority
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
    return conditions, params


async def _tagged(tx: Tx, project_id: str, tag: str, limit: int) -> list[str]:
    """The ids of up to `limit` tickets that have a tag."""
    rows = await tx.fetch_all(
        "SELECT ticket_id FROM helpdesk_ticket_tags WHERE project_id = :project_id AND tag = :tag"
        " ORDER BY ticket_id DESC LIMIT :most",
        {"project_id": project_id, "tag": tag, "most": limit},
    )
    return [row["ticket_id"] for row in rows]


async def count_by(
    tx: Tx,
    project_id: str,
    overdue_since_ms: int,
    now_ms: int,
    member_id: str | None,
    limit: int,
) -> dict[str, int]:
    """The number of each kind, counted up to `limit`."""
    kinds = {
        **{status: f"status = '{status}'" for status in ("open", "pending", "snoozed")},
        "unassigned": "status = 'open' AND assignee_id IS NULL",
        "mine": "status = 'open' AND assignee_id = :member_id",
        # Where there is a target, it says when.
        "overdue": "status = 'open' AND due_at_ms IS NULL AND waiting_since_ms <= :since_ms",
        "missed": "due_at_ms <= :now_ms",
    }
    counted = ", ".join(
        "(SELECT COUNT(*) FROM (SELECT 1 AS one FROM helpdesk_tickets"
        f" WHERE project_id = :project_id AND {condition} LIMIT :most) AS {name}_rows) AS {name}"
        for name, condition in kinds.items()
    )
    params = {"project_id": project_id, "since_ms": overdue_since_ms, "now_ms": now_ms}
    params["most"] = limit
    row = await tx.fetch_one(f"SELECT {counted}", {**params, "member_id": member_id or ""})
    assert row is not None, "a SELECT of values has a row"
    return {name: int(row[name]) for name in kinds}


async def changed_at(tx: Tx, project_id: str) -> int:
    """When a ticket of the project was last changed; 0 if there is none."""
    found: int | None = await tx.fetch_val(
        "SELECT updated_at_ms FROM helpdesk_tickets WHERE project_id = :project_id"
        " ORDER BY updated_at_ms DESC LIMIT 1",
        {"project_id": project_id},
    )
    return found or 0
