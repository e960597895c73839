"""The SQL of messages. Changes of status are conditional on the status before."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.channels.contract import OutgoingMessage
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import in_list
from msgsvc_core.messages.models import Message, MessageQuery

_COLUMNS = (
    "project_id, message_id, subscriber_id, channel, status, content, metadata, reason, error,"
    " attempts, message_ref, created_at_ms, expires_at_ms, finished_at_ms"
)


async def insert(tx: Tx, message: Message) -> None:
    await tx.insert(
        "core_messages",
        {
            "project_id": message.project_id,
            "message_id": message.message_id,
            "subscriber_id": message.subscriber_id,
            "channel": message.channel,
            "status": message.status,
            "content": _to_json(message.content.to_payload()),
            "metadata": None if message.metadata is None else _to_json(message.metadata),
            "attempts": 0,
            "created_at_ms": message.created_at_ms,
            "expires_at_ms": message.expires_at_ms,
        },
    )


async def find(tx: Tx, project_id: str, message_id: str) -> Message | None:
    found = await find_many(tx, [(project_id, message_id)])
    return found[0] if found else None


async def find_many(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[Message]:
    """Messages by (project_id, message_id), of several projects at once for the delivery lane."""
    ids, params = in_list("id", [message_id for _, message_id in keys])
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_messages WHERE message_id IN {ids}", params
    )
    wanted = set(keys)
    return [_message(row) for row in rows if (row["project_id"], row["message_id"]) in wanted]


async def list_page(
    tx: Tx, project_id: str, query: MessageQuery, after: str | None, limit: int
) -> list[Message]:
    """Newest first; `after` is the last id of the page before."""
    conditions = ["project_id = :project_id"]
    params: dict[str, Any] = {"project_id": project_id, "most": limit}
    for column in ("status", "subscriber_id"):
        value = getattr(query, column)
        if value is not None:
            conditions.append(f"{column} = :{column}")
            params[column] = value
    if after is not None:
        conditions.append("message_id < :after")
        params["after"] = after
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_messages WHERE {' AND '.join(conditions)}"
        " ORDER BY message_id DESC LIMIT :most",
        params,
    )
    return [_message(row) for row in rows]


async def find_by_ref(
    tx: Tx, channel: str, chat_id: str, user_id: str, message_ref: str
) -> Message | None:
    """The message to this person that the platform knows under `message_ref` in this chat.

    A shared bot has one chat with a person for all projects, so the project is what is looked for.
    """
    row = await tx.fetch_one(
        "SELECT m.project_id, m.message_id FROM core_messages m JOIN core_subscribers s"
        " ON s.project_id = m.project_id AND s.subscriber_id = m.subscriber_id"
        " WHERE m.channel = :channel AND m.message_ref = :message_ref"
        " AND s.chat_id = :chat_id AND s.user_id = :user_id",
        {
            "channel": channel,
            "chat_id": chat_id,
            "user_id": user_id,
            "message_ref": message_ref,
        },
    )
    return None if row is None else await find(tx, row["project_id"], row["message_id"])


async def mark_sending(tx: Tx, messages: Sequence[Message]) -> set[str]:
    """Notes, before the platform is called, that it will be: see `delivery`.

    Returns the ids of those that were `queued` until now: only who marked a message may send it.
    """
    if not messages:
        return set()
    ids, params = in_list("id", [message.message_id for message in messages])
    rows = await tx.fetch_all(
        "UPDATE core_messages SET status = 'sending', attempts = attempts + 1"
        f" WHERE message_id IN {ids} AND status = 'queued' RETURNING message_id",
        params,
    )
    return {row["message_id"] for row in rows}


async def mark_queued(tx: Tx, message: Message, error: str) -> None:
    """Puts a message back that the platform refused for now."""
    await tx.execute(
        "UPDATE core_messages SET status = 'queued', error = :error"
        " WHERE project_id = :project_id AND message_id = :message_id AND status = 'sending'",
        {**_key(message), "error": error},
    )


async def finish(
    tx: Tx,
    message: Message,
    status: str,
    now_ms: int,
    *,
    message_ref: str | None = None,
    reason: str | None = None,
    error: str | None = None,
) -> bool:
    """Gives a message its last status; False if it has one already."""
    return bool(
        await tx.execute(
            "UPDATE core_messages SET status = :status, finished_at_ms = :now_ms, reason = :reason,"
            " error = :error, message_ref = :message_ref"
            " WHERE project_id = :project_id AND message_id = :message_id"
            " AND status IN ('queued', 'sending')",
            {
                **_key(message),
                "status": status,
                "now_ms": now_ms,
                "reason": reason,
                "error": error,
                "message_ref": message_ref,
            },
        )
    )


def _key(message: Message) -> dict[str, str]:
    return {"project_id": message.project_id, "message_id": message.message_id}


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _message(row: Row) -> Message:
    values = {column: row[column] for column in _COLUMNS.split(", ")}
    values["content"] = OutgoingMessage.from_payload(json.loads(values["content"]))
    if values["metadata"] is not None:
        values["metadata"] = json.loads(values["metadata"])
    return Message(**values)
