"""The SQL of tickets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgsvc_core.api.pagination import until_id
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import Dialect, for_update, in_list, string_agg
from msgsvc_helpdesk.models import SORTED_BY, DueWithin, Place, Ticket, TicketFilters, TicketQuery

_COLUMNS = (
    "project_id",
    "ticket_id",
    "number",
    "channel",
    "subscriber_id",
    "customer_name",
    "customer_email",
    "subject",
    "status",
    "priority",
    "assignee_id",
    "source",
    "source_id",
    "created_at_ms",
    "updated_at_ms",
    "last_message_at_ms",
    "waiting_since_ms",
    "told_waiting_at_ms",
    "snoozed_until_ms",
    "first_response_at_ms",
    "closed_at_ms",
    "merged_into",
    "csat_score",
    "csat_comment",
    "csat_at_ms",
    "erased_at_ms",
    "due_at_ms",
    "away_told_at_ms",
)
_THIS = "project_id = :project_id AND ticket_id = :ticket_id"
_LABELLED = "l.project_id = :project_id AND l.tag = :tag AND l.ticket_id = t.ticket_id"


def select_tickets(dialect: Dialect, source: str = "helpdesk_tickets t") -> str:
    """The start of a SELECT of tickets `t` of `source`, for `read_ticket`."""
    # No tag holds a comma: see `TicketTag`.
    tags = (
        f"(SELECT {string_agg('g.tag', dialect)} FROM helpdesk_ticket_tags g"
        " WHERE g.project_id = t.project_id AND g.ticket_id = t.ticket_id)"
    )
    columns = ", ".join(f"t.{column}" for column in _COLUMNS)
    return f"SELECT {columns}, {tags} AS tags FROM {source}"


async def next_number(tx: Tx, project_id: str) -> int:
    """The project's next ticket number. Concurrent callers wait until the transaction ends, and reuse the
    number if it is rolled back; so numbers have neither gaps nor duplicates."""
    number: int = await tx.fetch_val(
        "INSERT INTO helpdesk_desks (project_id, last_number) VALUES (:project_id, 1)"
        " ON CONFLICT (project_id) DO UPDATE SET last_number = helpdesk_desks.last_number + 1"
        " RETURNING last_number",
        {"project_id": project_id},
    )
    return number


async def last_assignee(tx: Tx, project_id: str) -> str | None:
    """The last member in the round robin. Called after `next_number`, whose lock prevents concurrent
    calls."""
    found: str | None = await tx.fetch_val(
        "SELECT last_assignee_id FROM helpdesk_desks WHERE project_id = :project_id",
        {"project_id": project_id},
    )
    return found


async def record_turn(tx: Tx, project_id: str, member_id: str) -> None:
    await tx.execute(
        "UPDATE helpdesk_desks SET last_assignee_id = :member_id WHERE project_id = :project_id",
        {"project_id": project_id, "member_id": member_id},
    )


async def insert(tx: Tx, ticket: Ticket) -> None:
    """Adds a ticket and its tags."""
    await tx.insert("helpdesk_tickets", {column: getattr(ticket, column) for column in _COLUMNS})
    await _add_tags(tx, ticket.project_id, ticket.ticket_id, ticket.tags)


async def find(
    tx: Tx, project_id: str, ticket_id: str | None = None, *, number: int | None = None
) -> Ticket | None:
    """A ticket by its id, or by its number."""
    if ticket_id is not None:
        return await _find(tx, project_id, "t.ticket_id = :ticket_id", {"ticket_id": ticket_id})
    return await _find(tx, project_id, "t.number = :number", {"number": number})


async def lock(tx: Tx, project_id: str, ticket_id: str) -> Ticket | None:
    """Like `find`; locks the ticket until the transaction ends."""
    await tx.fetch_one(
        f"SELECT 1 AS one FROM helpdesk_tickets WHERE {_THIS}{for_update(tx.dialect)}",
        {"project_id": project_id, "ticket_id": ticket_id},
    )
    # In a statement of its own: it sees what was committed while this one waited, tags too.
    return await find(tx, project_id, ticket_id)


async def find_by_source(tx: Tx, project_id: str, source: str, source_id: str) -> Ticket | None:
    """The ticket that was opened for a source."""
    condition = "t.source = :source AND t.source_id = :source_id"
    return await _find(tx, project_id, condition, {"source": source, "source_id": source_id})


async def latest_of(
    tx: Tx, project_id: str, subscriber_id: str, *, subject: str | None = None
) -> Ticket | None:
    """The ticket that a subscriber's message belongs to: of those that are not closed the one with the
    latest entry, else the one that was closed last. With `subject`, of those with this subject."""
    of_subject = "" if subject is None else " AND t.subject = :subject"
    row = await tx.fetch_one(
        f"{select_tickets(tx.dialect)} WHERE t.project_id = :project_id"
        f" AND t.subscriber_id = :subscriber_id AND t.merged_into IS NULL{of_subject}"
        " ORDER BY CASE WHEN t.closed_at_ms IS NULL THEN 0 ELSE 1 END,"
        " COALESCE(t.closed_at_ms, t.last_message_at_ms) DESC, t.ticket_id DESC LIMIT 1",
        {"project_id": project_id, "subscriber_id": subscriber_id}
        | ({} if subject is None else {"subject": subject}),
    )
    return None if row is None else read_ticket(row)


async def list_page(
    tx: Tx,
    project_id: str,
    query: TicketQuery,
    limit: int,
    due: DueWithin | None = None,
    *,
    merged: bool = True,
) -> list[Ticket]:
    """In the order of `query.sort`; `due` are the times of `query.due`. Without `merged`, those that were
    merged into others are left out. Raises `BadRequest` for a cursor of another order."""
    after = query.place
    if query.sort != "newest":
        return await _list_sorted(tx, project_id, query, after, limit, due)
    last = None if after is None else after[1]
    unmerged = "" if merged else " AND t.merged_into IS NULL"
    selected = _listed(tx.dialect, project_id, query, last, due)
    rows = await tx.fetch_all(
        f"{select_tickets(tx.dialect, selected.source)} WHERE {selected.condition}{unmerged}"
        f" ORDER BY {selected.order} DESC LIMIT :most",
        {**selected.params, "most": limit},
    )
    # Ids grow with time: what comes after the first that is too old, is older.
    since_ms = -1 if query.created_after is None else query.created_after
    return [ticket for ticket in map(read_ticket, rows) if ticket.created_at_ms > since_ms]


async def select_ids(
    tx: Tx,
    project_id: str,
    filters: TicketFilters,
    after: str | None,
    limit: int,
    due: DueWithin | None,
) -> tuple[list[str], str | None]:
    """The ids of the next tickets that match, newest first and without merged ones, and the last one that was
    looked at; None if there are no more."""
    selected = _listed(tx.dialect, project_id, filters, after, due)
    rows = await tx.fetch_all(
        f"SELECT t.ticket_id, t.created_at_ms FROM {selected.source} WHERE {selected.condition}"
        f" AND t.merged_into IS NULL ORDER BY {selected.order} DESC LIMIT :most",
        {**selected.params, "most": limit},
    )
    since_ms = -1 if filters.created_after is None else filters.created_after
    found = [row["ticket_id"] for row in rows if row["created_at_ms"] > since_ms]
    return found, None if len(found) < limit else found[-1]


@dataclass(frozen=True, slots=True)
class _Listed:
    """The part of a query after FROM, with the tickets as `t`; `order` is the column of their ids."""

    source: str
    condition: str
    order: str
    params: dict[str, Any]


def _listed(
    dialect: Dialect,
    project_id: str,
    query: TicketFilters,
    after: str | None,
    due: DueWithin | None,
) -> _Listed:
    """Newest first. The caller applies `created_after`: ids grow with time, so it ends a page."""
    source, order = "helpdesk_tickets t", "t.ticket_id"
    conditions, params = _filtered(project_id, query, due)
    if query.tag is not None and query.status in (None, "closed"):
        # Labels are in the list's order; SQLite goes through a CROSS JOIN from left to right.
        source, order = "helpdesk_ticket_tags l CROSS JOIN helpdesk_tickets t", "l.ticket_id"
        conditions.append(_LABELLED)
    elif query.tag is not None:
        # Those that are not closed are the fewer.
        conditions.append(f"EXISTS (SELECT 1 FROM helpdesk_ticket_tags l WHERE {_LABELLED})")
    if (until := until_id("tkt", query.created_before)) is not None:
        conditions += ["t.ticket_id < :until", f"{order} < :until"]
        conditions.append("+t.created_at_ms < :created_before")
        params |= {"until": until, "created_before": query.created_before}
    if after is not None:
        conditions += ["t.ticket_id < :after", f"{order} < :after"]
        params["after"] = after
    if due is not None and dialect == "sqlite":
        # Kept from the list's own order: what is due is few.
        order = f"+{order}"
    return _Listed(source, " AND ".join(conditions), order, params)


async def _list_sorted(
    tx: Tx,
    project_id: str,
    query: TicketQuery,
    after: Place | None,
    limit: int,
    due: DueWithin | None,
) -> list[Ticket]:
    """Along the index of those that have a value in the column; the filters are tested on the way."""
    column = SORTED_BY[query.sort]
    # SQLite has no statistics, and does not use an index for a column with a plus.
    plus = "+" if tx.dialect == "sqlite" else ""
    conditions, params = _filtered(project_id, query, due, plus)
    conditions.append(f"t.{column} IS NOT NULL")
    if query.tag is not None:
        conditions.append(f"EXISTS (SELECT 1 FROM helpdesk_ticket_tags l WHERE {_LABELLED})")
    if query.created_after is not None:
        conditions.append(f"{plus}t.created_at_ms > :created_after")
        params["created_after"] = query.created_after
    if query.created_before is not None:
        conditions.append(f"{plus}t.created_at_ms < :created_before")
        params["created_before"] = query.created_before
    if after is not None:
        conditions.append(f"(t.{column}, t.ticket_id) > (:after_ms, :after_id)")
        params |= {"after_ms": after[0], "after_id": after[1]}
    rows = await tx.fetch_all(
        f"{select_tickets(tx.dialect)} WHERE {' AND '.join(conditions)}"
        f" ORDER BY t.{column}, t.ticket_id LIMIT :most",
        {**params, "most": limit},
    )
    return [read_ticket(row) for row in rows]


def _filtered(
    project_id: str, query: TicketFilters, due: DueWithin | None, plus: str = ""
) -> tuple[list[str], dict[str, Any]]:
    """Conditions of filters but for the tag, and their parameters; `plus` keeps SQLite from their indexes."""
    conditions = ["t.project_id = :project_id"]
    params: dict[str, Any] = {"project_id": project_id}
    for name in ("status", "priority", "subscriber_id", "channel"):
        if (value := getattr(query, name)) is not None:
            conditions.append(f"{plus}t.{name} = :{name}")
            params[name] = value
    if query.assignee_id == "none":
        conditions.append(f"{plus}t.assignee_id IS NULL")
    elif query.assignee_id is not None:
        conditions.append(f"{plus}t.assignee_id = :assignee_id")
        params["assignee_id"] = query.assignee_id
    if query.tag is not None:
        params["tag"] = query.tag
    if due is not None:
        conditions.append("t.due_at_ms > :due_after_ms AND t.due_at_ms <= :due_by_ms")
        params |= {"due_after_ms": due[0], "due_by_ms": due[1]}
    return conditions, params


async def update(tx: Tx, project_id: str, ticket_id: str, changes: Mapping[str, Any]) -> None:
    """Writes columns of a locked ticket."""
    sets = ", ".join(f"{column} = :{column}" for column in changes)
    await tx.execute(
        f"UPDATE helpdesk_tickets SET {sets} WHERE {_THIS}",
        {**changes, "project_id": project_id, "ticket_id": ticket_id},
    )


async def set_tags(tx: Tx, project_id: str, ticket_id: str, tags: Sequence[str]) -> None:
    """Replaces the tags."""
    await tx.execute(
        f"DELETE FROM helpdesk_ticket_tags WHERE {_THIS}",
        {"project_id": project_id, "ticket_id": ticket_id},
    )
    await _add_tags(tx, project_id, ticket_id, tags)


async def delete(tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> None:
    """Deletes tickets with all their entries."""
    these, params = in_list("ticket", ticket_ids)
    await tx.execute(
        f"DELETE FROM helpdesk_tickets WHERE project_id = :project_id AND ticket_id IN {these}",
        {"project_id": project_id, **params},
    )


async def redirect(tx: Tx, project_id: str, ticket_id: str, into: str) -> None:
    """Redirects tickets merged into a ticket to another one."""
    await tx.execute(
        "UPDATE helpdesk_tickets SET merged_into = :into"
        " WHERE project_id = :project_id AND merged_into = :ticket_id",
        {"project_id": project_id, "ticket_id": ticket_id, "into": into},
    )


async def merged_into(tx: Tx, project_id: str, ticket_id: str) -> list[str]:
    """The tickets that were merged into this one."""
    rows = await tx.fetch_all(
        "SELECT ticket_id FROM helpdesk_tickets"
        " WHERE project_id = :project_id AND merged_into = :ticket_id",
        {"project_id": project_id, "ticket_id": ticket_id},
    )
    return [row["ticket_id"] for row in rows]


async def find_snoozed(tx: Tx, now_ms: int, limit: int) -> list[tuple[str, str]]:
    """Tickets of any project whose snooze is over: (project_id, ticket_id)."""
    rows = await tx.fetch_all(
        "SELECT project_id, ticket_id FROM helpdesk_tickets WHERE snoozed_until_ms IS NOT NULL"
        " AND snoozed_until_ms <= :now_ms ORDER BY snoozed_until_ms, ticket_id LIMIT :most",
        {"now_ms": now_ms, "most": limit},
    )
    return [(row["project_id"], row["ticket_id"]) for row in rows]


async def find_waiting(tx: Tx, since_ms: int, limit: int) -> list[tuple[str, str]]:
    """Open tickets of any project whose customer has waited since then, and which were not reported yet."""
    rows = await tx.fetch_all(
        "SELECT project_id, ticket_id FROM helpdesk_tickets WHERE waiting_since_ms IS NOT NULL"
        " AND told_waiting_at_ms IS NULL AND waiting_since_ms <= :since_ms AND status = 'open'"
        " ORDER BY waiting_since_ms, ticket_id LIMIT :most",
        {"since_ms": since_ms, "most": limit},
    )
    return [(row["project_id"], row["ticket_id"]) for row in rows]


async def find_closed(tx: Tx, until_ms: int, limit: int) -> list[tuple[str, str]]:
    """Tickets of any project that were closed before that time, without merges since."""
    rows = await tx.fetch_all(
        "SELECT project_id, ticket_id FROM helpdesk_tickets WHERE closed_at_ms IS NOT NULL"
        " AND closed_at_ms <= :until_ms AND last_message_at_ms <= :until_ms"
        " ORDER BY closed_at_ms, ticket_id LIMIT :most",
        {"until_ms": until_ms, "most": limit},
    )
    return [(row["project_id"], row["ticket_id"]) for row in rows]


async def find_of_subscriber(tx: Tx, project_id: str, subscriber_id: str, limit: int) -> list[str]:
    """Tickets from which a subscriber was not erased yet."""
    rows = await tx.fetch_all(
        "SELECT ticket_id FROM helpdesk_tickets WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id AND erased_at_ms IS NULL"
        " ORDER BY ticket_id LIMIT :most",
        {"project_id": project_id, "subscriber_id": subscriber_id, "most": limit},
    )
    return [row["ticket_id"] for row in rows]


async def _find(
    tx: Tx, project_id: str, condition: str, params: Mapping[str, Any]
) -> Ticket | None:
    row = await tx.fetch_one(
        f"{select_tickets(tx.dialect)} WHERE t.project_id = :project_id AND {condition}",
        {"project_id": project_id, **params},
    )
    return None if row is None else read_ticket(row)


async def _add_tags(tx: Tx, project_id: str, ticket_id: str, tags: Sequence[str]) -> None:
    await tx.insert_many(
        "helpdesk_ticket_tags",
        [{"project_id": project_id, "tag": tag, "ticket_id": ticket_id} for tag in tags],
    )


def read_ticket(row: Row) -> Ticket:
    """A ticket from a row of `select_tickets`."""
    values, tags = {column: row[column] for column in _COLUMNS}, row["tags"]
    return Ticket(**values, tags=tuple(sorted(tags.split(","))) if tags else ())


async def list_unfinished(
    tx: Tx, project_id: str, status: str, after: str, limit: int
) -> list[str]:
    """Ids of tickets with a status, from the one after `after` on."""
    rows = await tx.fetch_all(
        "SELECT ticket_id FROM helpdesk_tickets WHERE project_id = :project_id"
        " AND status = :status AND ticket_id > :after ORDER BY ticket_id LIMIT :most",
        {"project_id": project_id, "status": status, "after": after, "most": limit},
    )
    return [row["ticket_id"] for row in rows]
