"""The SQL of updates that were taken, and of the chats that they came from.

`channel` is a channel's key.
"""

from msgsvc_core.db import Row, Tx


async def insert_update(tx: Tx, channel: str, update_id: str, now_ms: int) -> bool:
    """False for an update that was taken before."""
    return bool(
        await tx.execute(
            "INSERT INTO core_updates (channel, update_id, received_at_ms)"
            " VALUES (:channel, :update_id, :now_ms) ON CONFLICT DO NOTHING",
            {"channel": channel, "update_id": update_id, "now_ms": now_ms},
        )
    )


async def touch_chat(
    tx: Tx, channel: str, chat_id: str, *, user_id: str, project_id: str | None, now_ms: int
) -> Row:
    """Records use of a chat, and returns its `project_id` and `lang`; a new one gets the given values."""
    row = await tx.fetch_one(
        "INSERT INTO core_chats (channel, chat_id, user_id, project_id, seen_at_ms)"
        " VALUES (:channel, :chat_id, :user_id, :project_id, :now_ms)"
        " ON CONFLICT (channel, chat_id) DO UPDATE SET seen_at_ms = :now_ms"
        " RETURNING project_id, lang",
        {
            "channel": channel,
            "chat_id": chat_id,
            "user_id": user_id,
            "project_id": project_id,
            "now_ms": now_ms,
        },
    )
    assert row is not None
    return row


async def set_project(tx: Tx, channel: str, chat_id: str, project_id: str) -> None:
    await tx.execute(
        "UPDATE core_chats SET project_id = :project_id"
        " WHERE channel = :channel AND chat_id = :chat_id",
        {"project_id": project_id, "channel": channel, "chat_id": chat_id},
    )
