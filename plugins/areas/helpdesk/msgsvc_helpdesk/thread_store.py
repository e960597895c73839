"""The SQL of tickets' threads in chats."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of
from msgsvc_core.kernel.values import value_object

_COLUMNS = "project_id, ticket_id, bot, chat_id, thread"


@value_object
class TicketThread:
    """The thread of a chat in which a ticket is talked about. `bot` is the key of the channel; `thread` is
    None while it is being opened."""

    project_id: str
    ticket_id: str
    bot: str
    chat_id: str
    thread: str | None


async def insert(tx: Tx, thread: TicketThread) -> None:
    await tx.insert(
        "helpdesk_threads", {name: getattr(thread, name) for name in _COLUMNS.split(", ")}
    )


async def bind(tx: Tx, thread: TicketThread) -> bool:
    """Records the thread that was opened for a ticket. False if none is expected any more, e.g. because its
    person was erased, or if it is another ticket's by now."""
    updated = await tx.execute(
        "UPDATE helpdesk_threads SET thread = :thread"
        " WHERE project_id = :project_id AND ticket_id = :ticket_id AND thread IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM helpdesk_threads o"
        " WHERE o.bot = :bot AND o.chat_id = :chat_id AND o.thread = :thread)",
        {name: getattr(thread, name) for name in _COLUMNS.split(", ")},
    )
    return bool(updated)


async def stop_waiting(tx: Tx, project_id: str, ticket_id: str) -> None:
    """No thread is being opened for the ticket any more."""
    await tx.execute(
        "DELETE FROM helpdesk_threads"
        " WHERE project_id = :project_id AND ticket_id = :ticket_id AND thread IS NULL",
        {"project_id": project_id, "ticket_id": ticket_id},
    )


async def find(
    tx: Tx, bot: str, chat_id: str, thread: str, opening_since_ms: int
) -> TicketThread | None:
    """Whose thread of a chat it is. A shared bot has one chat with a person for all projects, so the result
    includes the project. The ticket is that into which its own was merged.

    One that no ticket has is taken for that which is being opened, for a ticket that is not older than
    `opening_since_ms`: people see it before its id is known here.
    """
    # One statement: between two, the thread might be recorded.
    row = await tx.fetch_one(
        "SELECT h.project_id, COALESCE(t.merged_into, t.ticket_id) AS ticket_id, h.bot, h.chat_id,"
        " h.thread FROM helpdesk_threads h JOIN helpdesk_tickets t"
        " ON t.project_id = h.project_id AND t.ticket_id = h.ticket_id"
        " WHERE h.bot = :bot AND h.chat_id = :chat_id"
        " AND (h.thread = :thread OR (h.thread IS NULL AND t.created_at_ms >= :opening_since_ms))"
        " ORDER BY CASE WHEN h.thread IS NULL THEN 1 ELSE 0 END, h.ticket_id LIMIT 1",
        {"bot": bot, "chat_id": chat_id, "thread": thread, "opening_since_ms": opening_since_ms},
    )
    return None if row is None else _read(row)


async def find_of(tx: Tx, project_id: str, ticket_id: str, bot: str, chat_id: str) -> str | None:
    """The thread of a ticket in that chat: its own, or that of a ticket which was merged into it."""
    found: str | None = await tx.fetch_val(
        "SELECT h.thread FROM helpdesk_tickets t JOIN helpdesk_threads h"
        " ON h.project_id = t.project_id AND h.ticket_id = t.ticket_id"
        " WHERE t.project_id = :project_id AND (t.ticket_id = :ticket_id OR t.merged_into = :ticket_id)"
        " AND h.bot = :bot AND h.chat_id = :chat_id AND h.thread IS NOT NULL"
        " ORDER BY CASE WHEN t.ticket_id = :ticket_id THEN 0 ELSE 1 END, t.ticket_id DESC LIMIT 1",
        {"project_id": project_id, "ticket_id": ticket_id, "bot": bot, "chat_id": chat_id},
    )
    return found


async def delete(tx: Tx, bot: str, chat_id: str, thread: str) -> None:
    """Takes a thread of a chat from its ticket."""
    await tx.execute(
        "DELETE FROM helpdesk_threads WHERE bot = :bot AND chat_id = :chat_id AND thread = :thread",
        {"bot": bot, "chat_id": chat_id, "thread": thread},
    )


async def delete_of(tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> None:
    """Forgets the threads of tickets."""
    these, params = any_of("ticket_id", "tickets", ticket_ids, tx.dialect)
    await tx.execute(
        f"DELETE FROM helpdesk_threads WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, **params},
    )


def _read(row: Row) -> TicketThread:
    return TicketThread(**{name: row[name] for name in _COLUMNS.split(", ")})
