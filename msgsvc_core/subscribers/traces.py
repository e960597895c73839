"""The SQL of what is left of a person who was erased. Each statement finds nothing the second time."""

import json
from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels.calls import JOB as CALL
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.db.sql import among, listed
from msgsvc_core.kernel.json import to_json
from msgsvc_core.subscribers.models import Subscriber

#: What a message holds that can't be removed yet, because its delivery has yet to end.
_NOTHING = to_json(OutgoingMessage("").to_payload())


async def delete_subscriber(tx: Tx, project_id: str, subscriber_id: str) -> bool:
    """Removes the row, and by its foreign keys tags, permissions and what plugins tied to it."""
    return bool(
        await tx.execute(
            "DELETE FROM core_subscribers"
            " WHERE project_id = :project_id AND subscriber_id = :subscriber_id",
            {"project_id": project_id, "subscriber_id": subscriber_id},
        )
    )


async def delete_chats(tx: Tx, erased: Subscriber) -> bool:
    """Removes the person's chats that no other project's subscription uses; those that one does use
    forget this project. True if the chat with the person's bot is gone."""
    params = {
        "project_id": erased.project_id,
        "bot": erased.bot,
        "name": erased.channel,
        "user_id": erased.user_id,
        "subscriber_id": erased.subscriber_id,
    }
    # The bot that they started last, and those that the project's channel had before.
    theirs = (
        "user_id = :user_id AND (channel = :bot OR (project_id = :project_id AND (channel = :name"
        " OR channel IN (SELECT channel_id FROM core_channels"
        " WHERE project_id = :project_id AND name = :name))))"
    )
    await tx.execute(
        "DELETE FROM core_offers WHERE (channel, chat_id) IN"
        f" (SELECT channel, chat_id FROM core_chats WHERE {theirs})",
        params,
    )
    await tx.execute(
        f"DELETE FROM core_chats WHERE {theirs} AND NOT EXISTS (SELECT 1 FROM core_subscribers s"
        " WHERE s.bot = core_chats.channel AND s.user_id = core_chats.user_id"
        " AND s.subscriber_id <> :subscriber_id)",
        params,
    )
    await tx.execute(
        "UPDATE core_chats SET project_id = NULL"
        " WHERE channel = :bot AND user_id = :user_id AND project_id = :project_id",
        {name: params[name] for name in ("bot", "user_id", "project_id")},
    )
    return not await tx.fetch_all(
        "SELECT 1 FROM core_chats WHERE channel = :bot AND chat_id = :chat_id",
        {"bot": erased.bot, "chat_id": erased.chat_id},
    )


async def find_messages(
    tx: Tx, project_id: str, subscriber_id: str, after: str, most: int
) -> list[str]:
    """The ids of messages to a person, in their order."""
    rows = await tx.fetch_all(
        "SELECT message_id FROM core_messages WHERE project_id = :project_id"
        " AND subscriber_id = :subscriber_id AND message_id > :after"
        " ORDER BY message_id LIMIT :most",
        {"project_id": project_id, "subscriber_id": subscriber_id, "after": after, "most": most},
    )
    return [row["message_id"] for row in rows]


async def delete_messages(tx: Tx, project_id: str, message_ids: Sequence[str]) -> int:
    """Removes messages; of those whose delivery has yet to end, only what they say.

    Returns how many were not removed.
    """
    these = among("message_id", "ids", tx.dialect)
    params = {"project_id": project_id, "ids": listed(message_ids, tx.dialect)}
    await tx.execute(
        f"DELETE FROM core_messages WHERE project_id = :project_id AND {these}"
        " AND status NOT IN ('queued', 'sending')",
        params,
    )
    return await tx.execute(
        "UPDATE core_messages SET content = :nothing, shown = NULL, metadata = NULL, error = NULL"
        f" WHERE project_id = :project_id AND {these}",
        {**params, "nothing": _NOTHING},
    )


async def find_calls(tx: Tx, lane: str, chat_id: str, before_ms: int) -> list[str]:
    """The ids of jobs by which a bot was to say something in a chat, made until `before_ms`."""
    rows = await tx.fetch_all(
        "SELECT job_id, payload FROM core_jobs WHERE lane = :lane AND state IN ('ready', 'dead')"
        " AND name = :name AND created_at_ms <= :before_ms AND payload LIKE :pattern",
        {"lane": lane, "name": CALL, "before_ms": before_ms, "pattern": f"%{chat_id}%"},
    )
    return [row["job_id"] for row in rows if _chat_of(row["payload"]) == chat_id]


async def delete_jobs(tx: Tx, job_ids: Sequence[str]) -> None:
    """Removes jobs that nobody has in hand."""
    await tx.execute(
        f"DELETE FROM core_jobs WHERE {among('job_id', 'ids', tx.dialect)}"
        " AND state IN ('ready', 'dead')",
        {"ids": listed(job_ids, tx.dialect)},
    )


def _chat_of(payload: str) -> Any:
    return json.loads(payload).get("chat_id")
