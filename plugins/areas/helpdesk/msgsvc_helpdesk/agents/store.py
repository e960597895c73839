"""The SQL of messages to agents, and of the tickets open in their chats."""

from dataclasses import asdict
from typing import Any

from msgsvc_core.db import Row, Tx
from msgsvc_helpdesk.agents.models import FRESH, Draft, Note

_COLUMNS = (
    "project_id, note_id, ticket_id, subscriber_id, member_id, bot, chat_id, message_ref, kind,"
    " shown, created_at_ms"
)


async def insert_note(tx: Tx, note: Note) -> None:
    """The agent's subscriber is locked."""
    await tx.insert("helpdesk_agent_messages", asdict(note))


async def record_sent(tx: Tx, project_id: str, note_id: str, message_ref: str) -> Note | None:
    """Records the messenger's id of a message; None if it is no longer needed."""
    rows = await tx.fetch_all(
        "UPDATE helpdesk_agent_messages SET message_ref = :message_ref"
        f" WHERE project_id = :project_id AND note_id = :note_id RETURNING {_COLUMNS}",
        {"project_id": project_id, "note_id": note_id, "message_ref": message_ref},
    )
    return _note(rows[0]) if rows else None


async def find_by_ref(tx: Tx, bot: str, chat_id: str, message_ref: str) -> Note | None:
    """The newest, for a platform that reuses ids."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM helpdesk_agent_messages WHERE bot = :bot AND chat_id = :chat_id"
        " AND message_ref = :message_ref ORDER BY note_id DESC LIMIT 1",
        {"bot": bot, "chat_id": chat_id, "message_ref": message_ref},
    )
    return None if row is None else _note(row)


async def with_buttons(tx: Tx, project_id: str, ticket_id: str) -> list[Note]:
    """Messages about a ticket that may have buttons, oldest first."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM helpdesk_agent_messages WHERE project_id = :project_id"
        " AND ticket_id = :ticket_id AND kind <> 'word' ORDER BY note_id",
        {"project_id": project_id, "ticket_id": ticket_id},
    )
    return [_note(row) for row in rows]


async def is_offered(tx: Tx, project_id: str, ticket_id: str) -> bool:
    """Whether an agent has a message by which they can take the ticket."""
    return bool(
        await tx.fetch_val(
            "SELECT 1 AS found FROM helpdesk_agent_messages WHERE project_id = :project_id"
            " AND ticket_id = :ticket_id AND kind = 'offer' AND shown = :fresh LIMIT 1",
            {"project_id": project_id, "ticket_id": ticket_id, "fresh": FRESH},
        )
    )


async def show(tx: Tx, note: Note, shown: str) -> bool:
    """False if it is shown already."""
    return bool(
        await tx.execute(
            "UPDATE helpdesk_agent_messages SET shown = :shown WHERE project_id = :project_id"
            " AND note_id = :note_id AND shown <> :shown",
            {"project_id": note.project_id, "note_id": note.note_id, "shown": shown},
        )
    )


async def open_in_chat(tx: Tx, project_id: str, subscriber_id: str, ticket_id: str) -> None:
    """Sets the ticket that an agent, whose subscriber is locked, has open."""
    await _write_chat(tx, project_id, subscriber_id, {"ticket_id": ticket_id})


async def opened_in_chat(tx: Tx, project_id: str, subscriber_id: str) -> str | None:
    found: str | None = await tx.fetch_val(
        "SELECT ticket_id FROM helpdesk_agent_chats"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
        {"project_id": project_id, "subscriber_id": subscriber_id},
    )
    return found


async def save_draft(tx: Tx, project_id: str, subscriber_id: str, draft_id: str, text: str) -> None:
    """Replaces an earlier draft; the agent's subscriber is locked."""
    await _write_chat(tx, project_id, subscriber_id, {"draft_id": draft_id, "draft": text})


async def pop_draft(tx: Tx, project_id: str, subscriber_id: str, draft_id: str) -> Draft | None:
    """Removes and returns the text that a question was about; None if it was replaced or removed."""
    key = {"project_id": project_id, "subscriber_id": subscriber_id, "draft_id": draft_id}
    this = "project_id = :project_id AND subscriber_id = :subscriber_id AND draft_id = :draft_id"
    row = await tx.fetch_one(f"SELECT draft, ticket_id FROM helpdesk_agent_chats WHERE {this}", key)
    if row is None or not await tx.execute(
        f"UPDATE helpdesk_agent_chats SET draft_id = NULL, draft = NULL WHERE {this}", key
    ):
        return None
    return Draft(row["draft"], row["ticket_id"])


async def _write_chat(tx: Tx, project_id: str, subscriber_id: str, values: dict[str, Any]) -> None:
    columns = ", ".join(values)
    bound = ", ".join(f":{name}" for name in values)
    await tx.execute(
        f"INSERT INTO helpdesk_agent_chats (project_id, subscriber_id, {columns})"
        f" VALUES (:project_id, :subscriber_id, {bound})"
        " ON CONFLICT (project_id, subscriber_id) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in values),
        {"project_id": project_id, "subscriber_id": subscriber_id, **values},
    )


async def insert_file(
    tx: Tx, project_id: str, file_id: str, ticket_id: str, subscriber_id: str, text: str
) -> None:
    await tx.insert(
        "helpdesk_agent_files",
        {
            "project_id": project_id,
            "file_id": file_id,
            "ticket_id": ticket_id,
            "subscriber_id": subscriber_id,
            "text": text,
        },
    )


async def pop_file(tx: Tx, project_id: str, file_id: str) -> Row | None:
    """`ticket_id`, `subscriber_id` and `text` of a file that an agent sent; deletes the row."""
    rows = await tx.fetch_all(
        "DELETE FROM helpdesk_agent_files WHERE project_id = :project_id AND file_id = :file_id"
        " RETURNING ticket_id, subscriber_id, text",
        {"project_id": project_id, "file_id": file_id},
    )
    return rows[0] if rows else None


async def ticket_of_file(tx: Tx, project_id: str, file_id: str) -> str | None:
    """The ticket in which a customer sent a file."""
    found: str | None = await tx.fetch_val(
        "SELECT e.ticket_id FROM helpdesk_entry_files f JOIN helpdesk_entries e"
        " ON e.project_id = f.project_id AND e.entry_id = f.entry_id"
        " WHERE f.project_id = :project_id AND f.file_id = :file_id AND e.author = 'customer'",
        {"project_id": project_id, "file_id": file_id},
    )
    return found


async def tickets_of(tx: Tx, project_id: str, member_id: str, limit: int) -> list[str]:
    """Ids of a member's tickets that are not closed, oldest first."""
    rows = await tx.fetch_all(
        "SELECT ticket_id FROM helpdesk_tickets WHERE project_id = :project_id"
        " AND assignee_id = :member_id AND status <> 'closed' ORDER BY ticket_id"
        " LIMIT :most",
        {"project_id": project_id, "member_id": member_id, "most": limit},
    )
    return [row["ticket_id"] for row in rows]


async def waiting_for(tx: Tx, project_id: str, member_id: str, limit: int) -> list[str]:
    """Ids of tickets for an agent: their own, then unassigned ones; of each those first whose customer has
    waited longest."""
    rows = await tx.fetch_all(
        "SELECT ticket_id FROM helpdesk_tickets WHERE project_id = :project_id"
        " AND status <> 'closed' AND (assignee_id = :member_id OR assignee_id IS NULL)"
        " ORDER BY CASE WHEN assignee_id IS NULL THEN 1 ELSE 0 END,"
        " CASE WHEN waiting_since_ms IS NULL THEN 1 ELSE 0 END, waiting_since_ms, ticket_id"
        " LIMIT :most",
        {"project_id": project_id, "member_id": member_id, "most": limit},
    )
    return [row["ticket_id"] for row in rows]


def _note(row: Row) -> Note:
    return Note(*row)
