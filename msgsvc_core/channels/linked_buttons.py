"""The SQL of buttons that were sent as links to pages.

`channel` is a channel's key, `digest` the keyed hash of a page's token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import array_param, in_array, key_params, key_table
from msgsvc_core.security.sealed import SealedColumn

SEALED = SealedColumn(
    table="core_button_pages",
    column="sealed",
    key=("digest",),
    holds="the buttons of {count} message(s) that were sent as links",
    if_lost="nothing: their pages no longer exist, and people start over",
    is_lasting=False,
)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A message with buttons. `message_ref` is None until the platform has returned it."""

    channel: str
    chat_id: str
    sealed: str
    message_ref: str | None


async def save(
    tx: Tx, digest: str, channel: str, chat_id: str, *, sealed: str, now_ms: int
) -> None:
    """Stores the buttons of a message; those of a repeated attempt replace them."""
    await tx.execute(
        "INSERT INTO core_button_pages (digest, channel, chat_id, sealed, shown_at_ms)"
        " VALUES (:digest, :channel, :chat_id, :sealed, :now_ms)"
        " ON CONFLICT (digest) DO UPDATE SET sealed = :sealed, shown_at_ms = :now_ms",
        {
            "digest": digest,
            "channel": channel,
            "chat_id": chat_id,
            "sealed": sealed,
            "now_ms": now_ms,
        },
    )


async def set_ref(tx: Tx, digest: str, message_ref: str) -> None:
    """Records the platform's id of the message."""
    await tx.execute(
        "UPDATE core_button_pages SET message_ref = :message_ref WHERE digest = :digest",
        {"message_ref": message_ref, "digest": digest},
    )


async def find(tx: Tx, digests: Sequence[str], since_ms: int) -> StoredPage | None:
    """The page with one of `digests`, unless it was shown before `since_ms`."""
    row = await tx.fetch_one(
        "SELECT channel, chat_id, sealed, message_ref FROM core_button_pages"
        f" WHERE {in_array('digest', 'digests', tx.dialect)} AND shown_at_ms >= :since_ms",
        {"digests": array_param(digests, tx.dialect), "since_ms": since_ms},
    )
    if row is None:
        return None
    return StoredPage(row["channel"], row["chat_id"], row["sealed"], row["message_ref"])


async def delete_of_message(tx: Tx, channel: str, chat_id: str, message_ref: str) -> None:
    """Deletes the buttons of one message."""
    await tx.execute(
        "DELETE FROM core_button_pages WHERE channel = :channel AND chat_id = :chat_id"
        " AND message_ref = :message_ref",
        {"channel": channel, "chat_id": chat_id, "message_ref": message_ref},
    )


async def move(tx: Tx, channel: str, chat_id: str, new_chat_id: str) -> None:
    """Follows a chat to its new id."""
    await tx.execute(
        "UPDATE core_button_pages SET chat_id = :new_chat_id"
        " WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id, "new_chat_id": new_chat_id},
    )


async def delete_of_chats(tx: Tx, keys: Sequence[tuple[str, str]]) -> None:
    """Deletes the buttons of all messages in these chats, given as (channel, chat_id)."""
    if keys:
        await tx.execute(
            "DELETE FROM core_button_pages WHERE (channel, chat_id) IN (SELECT keys.channel, keys.chat"
            f" FROM {key_table(('channel', 'chat'), tx.dialect)})",
            key_params(keys, tx.dialect),
        )


async def delete_of_channel(tx: Tx, channel: str) -> None:
    """Deletes the buttons of all messages of a bot."""
    await tx.execute("DELETE FROM core_button_pages WHERE channel = :channel", {"channel": channel})
