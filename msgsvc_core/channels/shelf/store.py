"""The SQL of items that could not be read or processed. `channel` is a channel's key."""

from collections.abc import Sequence

from msgsvc_core.channels.shelf.models import ShelvedItem
from msgsvc_core.channels.updates import UnreadableReason
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.sql import array_param, in_array

_COLUMNS = (
    "item_id, channel, update_id, kind, reason, detail, origin, user_id, size, kept, received_at_ms,"
    " tried_at_ms, update_kind"
)


async def insert(tx: Tx, item: ShelvedItem, sealed: str) -> bool:
    """False if the item is on the shelf already."""
    return bool(
        await tx.execute(
            f"INSERT INTO core_shelf ({_COLUMNS}, sealed) VALUES (:item_id, :channel, :update_id, :kind,"
            " :reason, :detail, :origin, :user_id, :size, :kept, :received_at_ms, NULL, :update_kind,"
            " :sealed) ON CONFLICT (channel, update_id) DO NOTHING",
            {
                "item_id": item.item_id,
                "channel": item.channel,
                "update_id": item.update_id,
                "kind": item.kind,
                "reason": str(item.reason),
                "detail": item.detail,
                "origin": item.origin,
                "user_id": item.user_id,
                "size": item.size,
                "kept": item.kept,
                "received_at_ms": item.received_at_ms,
                "update_kind": item.update_kind,
                "sealed": sealed,
            },
        )
    )


async def sizes(tx: Tx, channel: str, *, is_failed: bool) -> list[tuple[str, int]]:
    """Ids and stored bytes of a channel's items, newest first: of updates whose handler failed, or of what
    could not be read."""
    rows = await tx.fetch_all(
        "SELECT item_id, kept FROM core_shelf WHERE channel = :channel"
        f" AND update_kind IS {'NOT NULL' if is_failed else 'NULL'} ORDER BY item_id DESC",
        {"channel": channel},
    )
    return [(row["item_id"], row["kept"]) for row in rows]


async def delete(tx: Tx, channel: str, item_ids: Sequence[str]) -> int:
    return await tx.execute(
        "DELETE FROM core_shelf WHERE channel = :channel"
        f" AND {in_array('item_id', 'ids', tx.dialect)}",
        {"channel": channel, "ids": array_param(item_ids, tx.dialect)},
    )


async def delete_of_channel(tx: Tx, channel: str) -> None:
    """Deletes all items of a channel."""
    await tx.execute("DELETE FROM core_shelf WHERE channel = :channel", {"channel": channel})


async def delete_of_person(tx: Tx, channels: Sequence[str], user_id: str) -> None:
    """Deletes the items of which it is known that they are a user's."""
    await tx.execute(
        "DELETE FROM core_shelf WHERE user_id = :user_id"
        f" AND {in_array('channel', 'channels', tx.dialect)}",
        {"user_id": user_id, "channels": array_param(channels, tx.dialect)},
    )


async def list_page(tx: Tx, channel: str, after: str | None, limit: int) -> list[ShelvedItem]:
    """Newest first; `after` is the last id of the page before."""
    rows = await tx.fetch_all(
        f"SELECT {_COLUMNS} FROM core_shelf WHERE channel = :channel"
        + (" AND item_id < :after" if after is not None else "")
        + " ORDER BY item_id DESC LIMIT :most",
        {"channel": channel, "most": limit, **({} if after is None else {"after": after})},
    )
    return [_item(row) for row in rows]


async def find(tx: Tx, item_id: str) -> tuple[ShelvedItem, str] | None:
    """An item, and its encrypted content."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS}, sealed FROM core_shelf WHERE item_id = :item_id", {"item_id": item_id}
    )
    return None if row is None else (_item(row), row["sealed"])


async def count(tx: Tx, channels: Sequence[str]) -> dict[str, int]:
    """How many items each of these channels has; those without any are left out."""
    rows = await tx.fetch_all(
        "SELECT channel, COUNT(*) AS shelved FROM core_shelf"
        f" WHERE {in_array('channel', 'channels', tx.dialect)} GROUP BY channel",
        {"channels": array_param(channels, tx.dialect)},
    )
    return {row["channel"]: row["shelved"] for row in rows}


async def delete_processed(tx: Tx) -> int:
    """Deletes the updates that were processed after all."""
    return await tx.execute(
        "DELETE FROM core_shelf WHERE update_kind IS NOT NULL AND EXISTS (SELECT 1 FROM core_updates u"
        " WHERE u.channel = core_shelf.channel AND u.update_id = core_shelf.update_id)"
    )


async def set_reason(tx: Tx, item_id: str, reason: str, detail: str, now_ms: int) -> None:
    """Records why an item could not be read or processed when somebody had it taken anyway."""
    await tx.execute(
        "UPDATE core_shelf SET reason = :reason, detail = :detail, tried_at_ms = :now_ms"
        " WHERE item_id = :item_id",
        {"reason": reason, "detail": detail, "now_ms": now_ms, "item_id": item_id},
    )


def _item(row: Row) -> ShelvedItem:
    return ShelvedItem(
        item_id=row["item_id"],
        channel=row["channel"],
        update_id=row["update_id"],
        kind=row["kind"],
        reason=UnreadableReason(row["reason"]),
        detail=row["detail"],
        origin=row["origin"],
        user_id=row["user_id"],
        size=row["size"],
        kept=row["kept"],
        received_at_ms=row["received_at_ms"],
        tried_at_ms=row["tried_at_ms"],
        update_kind=row["update_kind"],
    )
