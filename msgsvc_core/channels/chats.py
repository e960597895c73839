"""The SQL of bots' chats with users. `channel` is a channel's key."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgsvc_core.channels import linked_buttons
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import for_update, key_params, key_table


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A chat's user, by the platform's id, its project if it belongs to one, and the language that the user
    chose there."""

    user_id: str
    project_id: str | None
    lang: str | None


async def find(tx: Tx, channel: str, chat_id: str) -> StoredChat | None:
    row = await tx.fetch_one(
        "SELECT user_id, project_id, lang FROM core_chats"
        " WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )
    return None if row is None else StoredChat(row["user_id"], row["project_id"], row["lang"])


async def touch(
    tx: Tx, channel: str, chat_id: str, *, user_id: str, project_id: str | None, now_ms: int
) -> Row:
    """Records use of a chat, and returns its `project_id` and `lang`; a new one gets the given values."""
    row = await tx.fetch_one(
        "INSERT INTO core_chats (channel, chat_id, user_id, project_id, seen_at_ms)"
        " VALUES (:channel, :chat_id, :user_id, :project_id, :now_ms)"
        " ON CONFLICT (channel, chat_id) DO UPDATE SET seen_at_ms = CASE"
        " WHEN core_chats.seen_at_ms > excluded.seen_at_ms THEN core_chats.seen_at_ms"
        " ELSE excluded.seen_at_ms END"
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


async def enter(
    tx: Tx, channel: str, chat_id: str, user_id: str, project_id: str, now_ms: int
) -> None:
    """Assigns a chat to a project, as a start link does."""
    await tx.execute(
        "INSERT INTO core_chats (channel, chat_id, user_id, project_id, seen_at_ms)"
        " VALUES (:channel, :chat_id, :user_id, :project_id, :now_ms) ON CONFLICT (channel, chat_id)"
        " DO UPDATE SET project_id = :project_id, seen_at_ms = :now_ms",
        {
            "channel": channel,
            "chat_id": chat_id,
            "user_id": user_id,
            "project_id": project_id,
            "now_ms": now_ms,
        },
    )


async def set_project(tx: Tx, channel: str, chat_id: str, project_id: str) -> None:
    await tx.execute(
        "UPDATE core_chats SET project_id = :project_id"
        " WHERE channel = :channel AND chat_id = :chat_id",
        {"project_id": project_id, "channel": channel, "chat_id": chat_id},
    )


async def find_latest(tx: Tx, channel: str, user_id: str) -> str | None:
    """The id of the bot's chat with a user; the latest if there are several."""
    chat_id: str | None = await tx.fetch_val(
        "SELECT chat_id FROM core_chats WHERE channel = :channel AND user_id = :user_id"
        " ORDER BY seen_at_ms DESC LIMIT 1",
        {"channel": channel, "user_id": user_id},
    )
    return chat_id


async def find_seen_ms(tx: Tx, channel: str, chat_id: str) -> int | None:
    """When the chat was used last, in Unix milliseconds; None for an unknown one."""
    seen_at_ms: int | None = await tx.fetch_val(
        "SELECT seen_at_ms FROM core_chats WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )
    return seen_at_ms


async def find_language(tx: Tx, channel: str, chat_id: str) -> tuple[str, str | None] | None:
    """The chat's user, by the platform's id, and the language that they chose there."""
    row = await tx.fetch_one(
        "SELECT user_id, lang FROM core_chats WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )
    return None if row is None else (row["user_id"], row["lang"])


async def set_language(tx: Tx, channel: str, chat_id: str, lang: str) -> None:
    """Sets the language that the user chose for the bot's messages in the chat."""
    await tx.execute(
        "UPDATE core_chats SET lang = :lang WHERE channel = :channel AND chat_id = :chat_id",
        {"lang": lang, "channel": channel, "chat_id": chat_id},
    )


async def move(tx: Tx, channel: str, chat_id: str, new_chat_id: str) -> None:
    """Renames a chat to its new id, with its data, unless the new id exists already."""
    for table in ("core_chats", "core_offers"):
        await tx.execute(
            f"UPDATE {table} SET chat_id = :new_chat_id"
            " WHERE channel = :channel AND chat_id = :chat_id"
            f" AND NOT EXISTS (SELECT 1 FROM {table} there WHERE there.channel = :channel"
            " AND there.chat_id = :new_chat_id)",
            {"channel": channel, "chat_id": chat_id, "new_chat_id": new_chat_id},
        )
    await linked_buttons.move(tx, channel, chat_id, new_chat_id)


async def set_user(tx: Tx, channel: str, user_id: str, new_user_id: str) -> None:
    """Changes the id of a user in their chats with a bot."""
    await tx.execute(
        "UPDATE core_chats SET user_id = :new_user_id"
        " WHERE channel = :channel AND user_id = :user_id",
        {"channel": channel, "user_id": user_id, "new_user_id": new_user_id},
    )


async def lock_of_person(
    tx: Tx, project_id: str, name: str, channel: str, user_id: str
) -> list[tuple[str, str]]:
    """Locks a user's chats and returns them as (channel, chat_id): those with the bot `channel` and, in a
    project, those with earlier bots of its channel `name`. The lock is held until `tx` ends."""
    rows = await tx.fetch_all(
        "SELECT channel, chat_id FROM core_chats WHERE user_id = :user_id AND (channel = :channel"
        " OR (project_id = :project_id AND (channel = :name OR channel IN (SELECT channel_id"
        " FROM core_channels WHERE project_id = :project_id AND name = :name))))"
        f" ORDER BY channel, chat_id{for_update(tx.dialect)}",
        {"project_id": project_id, "name": name, "channel": channel, "user_id": user_id},
    )
    return [(row["channel"], row["chat_id"]) for row in rows]


async def forget_questions(tx: Tx, keys: Sequence[tuple[str, str]]) -> None:
    """Deletes the open questions of these chats, given as (channel, chat_id)."""
    await _delete(tx, "core_offers", keys)
    await linked_buttons.delete_of_chats(tx, keys)


async def delete(tx: Tx, keys: Sequence[tuple[str, str]]) -> None:
    """Deletes chats by (channel, chat_id)."""
    await _delete(tx, "core_chats", keys)


async def _delete(tx: Tx, table: str, keys: Sequence[tuple[str, str]]) -> None:
    if keys:
        await tx.execute(
            f"DELETE FROM {table} WHERE (channel, chat_id) IN (SELECT keys.channel, keys.chat"
            f" FROM {key_table(('channel', 'chat'), tx.dialect)})",
            key_params(keys, tx.dialect),
        )


async def lock_automatic(tx: Tx, channel: str, chat_id: str) -> str | None:
    """What a bot has answered in a chat by itself (`automatic_answers`), locked until `tx` ends."""
    found: str | None = await tx.fetch_val(
        "SELECT automatic FROM core_chats WHERE channel = :channel AND chat_id = :chat_id"
        f"{for_update(tx.dialect)}",
        {"channel": channel, "chat_id": chat_id},
    )
    return found


async def find_automatic(tx: Tx, channel: str, chat_id: str) -> str | None:
    """The same without a lock."""
    found: str | None = await tx.fetch_val(
        "SELECT automatic FROM core_chats WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )
    return found


async def set_automatic(tx: Tx, channel: str, chat_id: str, automatic: str) -> None:
    await tx.execute(
        "UPDATE core_chats SET automatic = :automatic"
        " WHERE channel = :channel AND chat_id = :chat_id",
        {"automatic": automatic, "channel": channel, "chat_id": chat_id},
    )


async def is_there(tx: Tx, channel: str, chat_id: str) -> bool:
    """Whether the chat exists."""
    found = await tx.fetch_val(
        "SELECT 1 AS found FROM core_chats WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )
    return found is not None


async def leave(tx: Tx, channel: str, user_id: str, project_id: str) -> None:
    """Removes the project from the user's chat with a bot."""
    await tx.execute(
        "UPDATE core_chats SET project_id = NULL"
        " WHERE channel = :channel AND user_id = :user_id AND project_id = :project_id",
        {"channel": channel, "user_id": user_id, "project_id": project_id},
    )
