"""The SQL of edits and deletions of messages; each change is one conditional UPDATE.

While an edit of a sent message is pending, `content` is the new content, and `shown` what the recipient sees.
Otherwise `shown` is NULL.
"""

import json
from collections.abc import Sequence

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.db.sql import any_of, for_update, key_params, key_table
from msgsvc_core.kernel.json import to_json
from msgsvc_core.messages.models import Message

_THIS = "project_id = :project_id AND message_id = :message_id"


async def change_content(
    tx: Tx, message: Message, content: OutgoingMessage, statuses: Sequence[str], now_ms: int
) -> str | None:
    """Sets a message's content; returns its status, or None if that is not one of `statuses`, or the
    message is deleted."""
    known, params = any_of("status", "statuses", statuses, tx.dialect)
    status = await tx.fetch_val(
        "UPDATE core_messages SET content = :content,"
        " shown = CASE WHEN status = 'queued' THEN NULL ELSE COALESCE(shown, content) END,"
        " edited_at_ms = CASE WHEN status = 'queued' THEN :now_ms ELSE edited_at_ms END"
        f" WHERE {_THIS} AND deleted_at_ms IS NULL AND {known} RETURNING status",
        {**_key(message), **params, "content": _text(content), "now_ms": now_ms},
    )
    return None if status is None else str(status)


async def still_queued(
    tx: Tx, messages: Sequence[Message]
) -> dict[tuple[str, str], OutgoingMessage]:
    """The current content of those messages that are still queued, by key.

    They are locked until the transaction ends.
    """
    if not messages:
        return {}
    rows = await tx.fetch_all(
        "SELECT m.project_id, m.message_id, m.content"
        f" FROM {key_table(('project', 'message'), tx.dialect)} CROSS JOIN core_messages m"
        " WHERE m.project_id = keys.project AND m.message_id = keys.message"
        f" AND m.status = 'queued'{for_update(tx.dialect, 'm')}",
        key_params([message.key for message in messages], tx.dialect),
    )
    return {
        (row["project_id"], row["message_id"]): OutgoingMessage.from_payload(
            json.loads(row["content"])
        )
        for row in rows
    }


async def blank(tx: Tx, project_id: str, message_ids: Sequence[str]) -> int:
    """Deletes the content of messages whose delivery has ended; returns how many those were."""
    these, params = any_of("message_id", "ids", message_ids, tx.dialect)
    return await tx.execute(
        "UPDATE core_messages SET content = :nothing, shown = NULL, metadata = NULL, error = NULL"
        f" WHERE project_id = :project_id AND {these} AND status NOT IN ('queued', 'sending')",
        {"project_id": project_id, **params, "nothing": _text(OutgoingMessage(""))},
    )


async def of_mailing(tx: Tx, project_id: str, job_id: str, after: str, most: int) -> list[str]:
    """The ids of a mailing's messages, in order."""
    rows = await tx.fetch_all(
        "SELECT message_id FROM core_messages WHERE project_id = :project_id AND job_id = :job_id"
        " AND message_id > :after ORDER BY message_id LIMIT :most",
        {"project_id": project_id, "job_id": job_id, "after": after, "most": most},
    )
    return [row["message_id"] for row in rows]


async def record_edited(tx: Tx, message: Message, now_ms: int) -> None:
    """Records that the recipient sees `message.content`. A later edit may still be pending."""
    await tx.execute(
        "UPDATE core_messages SET edited_at_ms = :now_ms, error = NULL,"
        " shown = CASE WHEN content = :content THEN NULL ELSE :content END"
        f" WHERE {_THIS} AND deleted_at_ms IS NULL",
        {**_key(message), "content": _text(message.content), "now_ms": now_ms},
    )


async def record_refusal(tx: Tx, message: Message, error: str, *, edit: bool) -> None:
    """Records that a change was refused, and why. The content is reset to what the recipient sees, unless
    a later edit is pending."""
    back = " content = COALESCE(shown, content), shown = NULL," if edit else ""
    condition = " AND content = :content" if edit else ""
    params = {**_key(message), "error": error, "content": _text(message.content)}
    if not edit:
        del params["content"]
    await tx.execute(
        f"UPDATE core_messages SET{back} error = :error WHERE {_THIS}{condition}", params
    )


async def delete_queued(tx: Tx, message: Message, now_ms: int) -> bool:
    """Deletes a message that is still queued; returns whether it was. `finish` sets its status."""
    return bool(
        await tx.execute(
            "UPDATE core_messages SET deleted_at_ms = :now_ms"
            f" WHERE {_THIS} AND status = 'queued' AND deleted_at_ms IS NULL",
            {**_key(message), "now_ms": now_ms},
        )
    )


async def record_deleted(tx: Tx, message: Message, now_ms: int) -> None:
    """Records that the message was removed from the chat."""
    await tx.execute(
        "UPDATE core_messages SET deleted_at_ms = :now_ms, error = NULL, shown = NULL"
        f" WHERE {_THIS} AND deleted_at_ms IS NULL",
        {**_key(message), "now_ms": now_ms},
    )


def _key(message: Message) -> dict[str, object]:
    return {"project_id": message.project_id, "message_id": message.message_id}


def _text(content: OutgoingMessage) -> str:
    return to_json(content.to_payload())
