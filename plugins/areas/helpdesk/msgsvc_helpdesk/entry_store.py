"""The SQL of tickets' entries."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from msgsvc_core.content.outgoing import Media
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import any_of
from msgsvc_core.kernel.json import to_json
from msgsvc_helpdesk.models import Edit, Entry

_COLUMNS = (
    "project_id",
    "entry_id",
    "ticket_id",
    "author",
    "member_id",
    "internal",
    "text",
    "format",
    "media",
    "message_id",
    "bot",
    "chat_id",
    "message_ref",
    "created_at_ms",
    "edited_at_ms",
    "files_digest",
    "source_id",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM helpdesk_entries"


async def insert(tx: Tx, entry: Entry) -> None:
    """Adds an entry with its files."""
    values = {column: getattr(entry, column) for column in _COLUMNS}
    values["media"] = None if entry.media is None else to_json(asdict(entry.media))
    await tx.insert("helpdesk_entries", values)
    await tx.insert_many(
        "helpdesk_entry_files", _file_rows(entry.project_id, entry.entry_id, entry.file_ids)
    )


async def list_page(
    tx: Tx, project_id: str, ticket_id: str, after: str | None, limit: int
) -> list[Entry]:
    """The entries of a ticket, newest first; `after` is the last id of the previous page."""
    rows = await tx.fetch_all(
        f"{_SELECT} WHERE project_id = :project_id AND ticket_id = :ticket_id"
        + (" AND entry_id < :after" if after is not None else "")
        + " ORDER BY entry_id DESC LIMIT :most",
        {"project_id": project_id, "ticket_id": ticket_id, "most": limit}
        | ({} if after is None else {"after": after}),
    )
    return await _whole(tx, project_id, rows)


async def find_by_ref(tx: Tx, bot: str, chat_id: str, message_ref: str) -> Entry | None:
    """A customer's message by its messenger reference.

    A shared bot has one chat with a person for all projects, so the result includes the project.
    """
    rows = await tx.fetch_all(
        f"{_SELECT} WHERE bot = :bot AND chat_id = :chat_id AND message_ref = :message_ref"
        " ORDER BY entry_id DESC LIMIT 1",
        {"bot": bot, "chat_id": chat_id, "message_ref": message_ref},
    )
    found = await _whole(tx, rows[0]["project_id"], rows) if rows else []
    return found[0] if found else None


async def ticket_of_refs(
    tx: Tx, project_id: str, bot: str, chat_id: str, message_refs: Sequence[str]
) -> str | None:
    """The ticket with the latest of a customer's messages in a chat, by their messenger references."""
    if not message_refs:
        return None
    these, params = any_of("message_ref", "refs", message_refs, tx.dialect)
    found: str | None = await tx.fetch_val(
        "SELECT ticket_id FROM helpdesk_entries WHERE project_id = :project_id AND bot = :bot"
        f" AND chat_id = :chat_id AND {these} ORDER BY entry_id DESC LIMIT 1",
        {"project_id": project_id, "bot": bot, "chat_id": chat_id, **params},
    )
    return found


async def ticket_of_message(tx: Tx, project_id: str, message_id: str) -> str | None:
    """The ticket in which a message of the core is an agent's reply."""
    found: str | None = await tx.fetch_val(
        "SELECT ticket_id FROM helpdesk_entries"
        " WHERE project_id = :project_id AND message_id = :message_id",
        {"project_id": project_id, "message_id": message_id},
    )
    return found


async def change(
    tx: Tx,
    entry: Entry,
    text: str,
    file_ids: Sequence[str],
    files_digest: str | None,
    now_ms: int,
) -> None:
    """Writes the edited text of a customer's message, and keeps the previous one; `file_ids` are added."""
    key = {"project_id": entry.project_id, "entry_id": entry.entry_id}
    await tx.execute(
        "INSERT INTO helpdesk_entry_edits (project_id, entry_id, edit, text, replaced_at_ms)"
        " SELECT project_id, entry_id, (SELECT COALESCE(MAX(e.edit), 0) + 1"
        " FROM helpdesk_entry_edits e WHERE e.project_id = :project_id"
        " AND e.entry_id = :entry_id), text, :now_ms FROM helpdesk_entries"
        " WHERE project_id = :project_id AND entry_id = :entry_id",
        {**key, "now_ms": now_ms},
    )
    await tx.execute(
        "UPDATE helpdesk_entries SET text = :text, edited_at_ms = :now_ms, files_digest = :digest"
        " WHERE project_id = :project_id AND entry_id = :entry_id",
        {**key, "text": text, "now_ms": now_ms, "digest": files_digest},
    )
    known = len(entry.file_ids)
    await tx.insert_many("helpdesk_entry_files", _file_rows(**key, file_ids=file_ids, after=known))


async def drop_edits(tx: Tx, entry: Entry, kept: int) -> None:
    """Deletes the oldest previous texts of a message, until `kept` are left."""
    key = {"project_id": entry.project_id, "entry_id": entry.entry_id, "kept": kept}
    await tx.execute(
        "DELETE FROM helpdesk_entry_edits WHERE project_id = :project_id AND entry_id = :entry_id"
        " AND edit <= (SELECT MAX(e.edit) FROM helpdesk_entry_edits e"
        " WHERE e.project_id = :project_id AND e.entry_id = :entry_id) - :kept",
        key,
    )


async def move(tx: Tx, project_id: str, ticket_id: str, into: str) -> None:
    """Moves the entries of one ticket to another."""
    await tx.execute(
        "UPDATE helpdesk_entries SET ticket_id = :into"
        " WHERE project_id = :project_id AND ticket_id = :ticket_id",
        {"project_id": project_id, "ticket_id": ticket_id, "into": into},
    )


async def files_of(tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> list[str]:
    """The files of tickets' entries that no other entries have: a stored file may be part of many replies."""
    these, params = any_of("e.ticket_id", "tickets", ticket_ids, tx.dialect)
    also_these, _same = any_of("also.ticket_id", "tickets", ticket_ids, tx.dialect)
    rows = await tx.fetch_all(
        "SELECT DISTINCT f.file_id FROM helpdesk_entries e JOIN helpdesk_entry_files f"
        " ON f.project_id = e.project_id AND f.entry_id = e.entry_id"
        f" WHERE e.project_id = :project_id AND {these} AND NOT EXISTS"
        " (SELECT 1 FROM helpdesk_entry_files g JOIN helpdesk_entries also"
        " ON also.project_id = g.project_id AND also.entry_id = g.entry_id"
        " WHERE g.project_id = :project_id AND g.file_id = f.file_id"
        f" AND NOT ({also_these}))",
        {"project_id": project_id, **params},
    )
    return [row["file_id"] for row in rows]


async def blank_source(tx: Tx, project_id: str, source_id: str) -> list[str]:
    """Deletes the content copied from `source_id`; returns the files that no other entries have."""
    key = {"project_id": project_id, "source_id": source_id}
    copies = (
        "(SELECT entry_id FROM helpdesk_entries"
        " WHERE project_id = :project_id AND source_id = :source_id)"
    )
    of_copies = f"project_id = :project_id AND entry_id IN {copies}"
    rows = await tx.fetch_all(
        f"SELECT DISTINCT f.file_id FROM helpdesk_entry_files f WHERE f.project_id = :project_id"
        f" AND f.entry_id IN {copies} AND NOT EXISTS (SELECT 1 FROM helpdesk_entry_files g"
        " WHERE g.project_id = :project_id AND g.file_id = f.file_id"
        f" AND g.entry_id NOT IN {copies})",
        key,
    )
    for table in ("helpdesk_entry_files", "helpdesk_entry_edits"):
        await tx.execute(f"DELETE FROM {table} WHERE {of_copies}", key)
    await tx.execute(
        "UPDATE helpdesk_entries SET text = '', media = NULL"
        " WHERE project_id = :project_id AND source_id = :source_id",
        key,
    )
    return [row["file_id"] for row in rows]


async def delete_of(tx: Tx, project_id: str, ticket_ids: Sequence[str]) -> None:
    """Deletes the entries of tickets."""
    these, params = any_of("ticket_id", "tickets", ticket_ids, tx.dialect)
    await tx.execute(
        f"DELETE FROM helpdesk_entries WHERE project_id = :project_id AND {these}",
        {"project_id": project_id, **params},
    )


async def _whole(tx: Tx, project_id: str, rows: Sequence[Row]) -> list[Entry]:
    """Entries with their files and earlier texts."""
    if not rows:
        return []
    these, params = any_of("entry_id", "ids", [row["entry_id"] for row in rows], tx.dialect)
    params["project_id"] = project_id
    where = f"WHERE project_id = :project_id AND {these}"
    files: dict[str, list[str]] = {}
    edits: dict[str, list[Edit]] = {}
    for row in await tx.fetch_all(
        f"SELECT entry_id, file_id FROM helpdesk_entry_files {where} ORDER BY position", params
    ):
        files.setdefault(row["entry_id"], []).append(row["file_id"])
    for row in await tx.fetch_all(
        f"SELECT entry_id, text, replaced_at_ms FROM helpdesk_entry_edits {where} ORDER BY edit",
        params,
    ):
        edits.setdefault(row["entry_id"], []).append(Edit(row["text"], row["replaced_at_ms"]))
    return [
        _entry(row, files.get(row["entry_id"], ()), edits.get(row["entry_id"], ())) for row in rows
    ]


def _entry(row: Row, files: Sequence[str], edits: Sequence[Edit]) -> Entry:
    values = {column: row[column] for column in _COLUMNS}
    media = values["media"]
    values |= {
        "internal": bool(values["internal"]),
        "media": None if media is None else Media(**json.loads(media)),
    }
    return Entry(**values, file_ids=tuple(files), edits=tuple(edits))


def _file_rows(
    project_id: str, entry_id: str, file_ids: Sequence[str], after: int = 0
) -> list[dict[str, Any]]:
    return [
        {"project_id": project_id, "entry_id": entry_id, "file_id": file_id, "position": position}
        for position, file_id in enumerate(dict.fromkeys(file_ids), after)
    ]
