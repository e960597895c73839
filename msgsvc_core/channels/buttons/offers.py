"""The SQL of numbered replies: the latest question of each chat.

`channel` is a channel's key.
"""

from dataclasses import dataclass

from msgsvc_core.db import Tx
from msgsvc_core.security.sealed import SealedColumn

SEALED = SealedColumn(
    table="core_offers",
    column="sealed",
    key=("channel", "chat_id"),
    holds="open questions of bots in {count} chat(s)",
    if_lost="nothing: their buttons are refused, and people start over",
    is_lasting=False,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """The buttons of a chat's latest question, encrypted; `message_ref` is set once the platform has
    returned it."""

    sealed: str
    message_ref: str | None


async def save(
    tx: Tx, channel: str, chat_id: str, *, offer_id: str, sealed: str, now_ms: int
) -> None:
    """Replaces the chat's latest question."""
    await tx.execute(
        "INSERT INTO core_offers (channel, chat_id, offer_id, sealed, asked_at_ms)"
        " VALUES (:channel, :chat_id, :offer_id, :sealed, :now_ms)"
        " ON CONFLICT (channel, chat_id) DO UPDATE SET offer_id = :offer_id, sealed = :sealed,"
        " message_ref = NULL, asked_at_ms = :now_ms",
        {
            "channel": channel,
            "chat_id": chat_id,
            "offer_id": offer_id,
            "sealed": sealed,
            "now_ms": now_ms,
        },
    )


async def set_ref(tx: Tx, channel: str, chat_id: str, offer_id: str, message_ref: str) -> None:
    await tx.execute(
        "UPDATE core_offers SET message_ref = :message_ref"
        " WHERE channel = :channel AND chat_id = :chat_id AND offer_id = :offer_id",
        {
            "channel": channel,
            "chat_id": chat_id,
            "offer_id": offer_id,
            "message_ref": message_ref,
        },
    )


async def change(
    tx: Tx, channel: str, chat_id: str, message_ref: str, *, sealed: str | None
) -> None:
    """Updates the buttons after an edit, if the message is the chat's latest question; None removes them."""
    params = {"channel": channel, "chat_id": chat_id, "message_ref": message_ref}
    this = "channel = :channel AND chat_id = :chat_id AND message_ref = :message_ref"
    if sealed is None:
        await tx.execute(f"DELETE FROM core_offers WHERE {this}", params)
    else:
        await tx.execute(
            f"UPDATE core_offers SET sealed = :sealed WHERE {this}", {**params, "sealed": sealed}
        )


async def delete(tx: Tx, channel: str, chat_id: str) -> None:
    """Deletes the chat's question."""
    await tx.execute(
        "DELETE FROM core_offers WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )


async def is_asked(tx: Tx, channel: str, chat_id: str) -> bool:
    """Whether the chat has a question, of any age."""
    found = await tx.fetch_val(
        "SELECT 1 AS found FROM core_offers WHERE channel = :channel AND chat_id = :chat_id",
        {"channel": channel, "chat_id": chat_id},
    )
    return found is not None


async def follow(tx: Tx, channel: str, chat_id: str, own_prefix: str, own_since_ms: int) -> None:
    """Deletes the question after a later message, unless it is recent and its id starts with `own_prefix`."""
    await tx.execute(
        "DELETE FROM core_offers WHERE channel = :channel AND chat_id = :chat_id"
        " AND (asked_at_ms < :own_since_ms OR offer_id NOT LIKE :own)",
        {
            "channel": channel,
            "chat_id": chat_id,
            "own": f"{own_prefix}%",
            "own_since_ms": own_since_ms,
        },
    )


async def find(tx: Tx, channel: str, chat_id: str, since_ms: int) -> Offer | None:
    row = await tx.fetch_one(
        "SELECT sealed, message_ref FROM core_offers"
        " WHERE channel = :channel AND chat_id = :chat_id AND asked_at_ms >= :since_ms",
        {"channel": channel, "chat_id": chat_id, "since_ms": since_ms},
    )
    return None if row is None else Offer(row["sealed"], row["message_ref"])
