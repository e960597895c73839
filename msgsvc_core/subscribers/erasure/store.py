"""The SQL that removes a person from the core's own tables of people and chats."""

from msgsvc_core.db import Tx
from msgsvc_core.subscribers.models import Subscriber


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
    """Deletes the person's chats that no other project's subscription uses, and removes this project from
    the others. True if the chat with the person's bot was deleted."""
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
