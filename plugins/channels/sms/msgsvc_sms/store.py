"""The SQL of received messages, and of limits."""

from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import in_list, limited_delete
from msgsvc_core.kernel.values import value_object

#: Tables whose rows are deleted by age, with the column that says it.
AGES = {
    "sms_inbox": "received_at_ms",
    "sms_parts": "received_at_ms",
    "sms_numbers": "sent_at_ms",
    "sms_counters": "window_ends_at_ms",
    "sms_blocks": "ends_at_ms",
}


@value_object
class Block:
    """A limit that has stopped messages since `began_at_ms`, `refused` so far."""

    rule: str
    subject: str
    began_at_ms: int
    ends_at_ms: int
    refused: int


# ---- what came in -------------------------------------------------------------------------------


async def insert_item(tx: Tx, channel: str, item_id: str, sealed: str, now_ms: int) -> None:
    await tx.insert(
        "sms_inbox",
        {"channel": channel, "item_id": item_id, "sealed": sealed, "received_at_ms": now_ms},
    )


async def list_items(tx: Tx, channel: str, most: int) -> list[tuple[str, str]]:
    """Id and sealed content of the oldest items: ids sort by creation."""
    rows = await tx.fetch_all(
        "SELECT item_id, sealed FROM sms_inbox WHERE channel = :channel"
        " ORDER BY item_id LIMIT :most",
        {"channel": channel, "most": most},
    )
    return [(row["item_id"], row["sealed"]) for row in rows]


async def delete_items(tx: Tx, channel: str, item_ids: Sequence[str]) -> None:
    if item_ids:
        which, params = in_list("item", item_ids)
        await tx.execute(
            f"DELETE FROM sms_inbox WHERE channel = :channel AND item_id IN {which}",
            {"channel": channel, **params},
        )


async def lock_parts(
    tx: Tx, channel: str, sender_hash: str, reference: int, total: int, now_ms: int
) -> str:
    """What is kept of a message in parts, empty at first; locked, so that of two sessions with its last
    parts the second finds the first's."""
    return str(
        await tx.fetch_val(
            "INSERT INTO sms_parts (channel, sender_hash, reference, total, sealed, received_at_ms)"
            " VALUES (:channel, :sender, :reference, :total, '', :now_ms)"
            " ON CONFLICT (channel, sender_hash, reference, total)"
            " DO UPDATE SET received_at_ms = :now_ms RETURNING sealed",
            {
                "channel": channel,
                "sender": sender_hash,
                "reference": reference,
                "total": total,
                "now_ms": now_ms,
            },
        )
    )


async def update_parts(
    tx: Tx, channel: str, sender_hash: str, reference: int, total: int, sealed: str | None
) -> None:
    """Keeps these parts; with None the message is complete."""
    key = {"channel": channel, "sender": sender_hash, "reference": reference, "total": total}
    where = (
        " WHERE channel = :channel AND sender_hash = :sender AND reference = :reference"
        " AND total = :total"
    )
    if sealed is None:
        await tx.execute(f"DELETE FROM sms_parts{where}", key)
    else:
        await tx.execute(f"UPDATE sms_parts SET sealed = :sealed{where}", {**key, "sealed": sealed})


# ---- limits -------------------------------------------------------------------------------------


async def is_known(tx: Tx, channel: str, number_hashes: Sequence[str]) -> bool:
    """Whether the number was written to before."""
    which, params = in_list("hash", number_hashes)
    found = await tx.fetch_val(
        f"SELECT 1 AS found FROM sms_numbers WHERE channel = :channel AND number_hash IN {which}",
        {"channel": channel, **params},
    )
    return found is not None


async def upsert_number(tx: Tx, channel: str, number_hash: str, now_ms: int) -> None:
    await tx.execute(
        "INSERT INTO sms_numbers (channel, number_hash, sent_at_ms)"
        " VALUES (:channel, :number_hash, :now_ms)"
        " ON CONFLICT (channel, number_hash) DO UPDATE SET sent_at_ms = :now_ms",
        {"channel": channel, "number_hash": number_hash, "now_ms": now_ms},
    )


async def debit(
    tx: Tx, channel: str, rule: str, subject: str, ends_at_ms: int, count: int, most: int
) -> bool:
    """Counts so many in a window; False, and nothing changes, if that would be more than `most`."""
    if count > most:
        return False
    return bool(
        await tx.execute(
            "INSERT INTO sms_counters (channel, rule, subject, window_ends_at_ms, used)"
            " VALUES (:channel, :rule, :subject, :ends_at_ms, :count)"
            " ON CONFLICT (channel, rule, subject, window_ends_at_ms)"
            " DO UPDATE SET used = sms_counters.used + :count"
            " WHERE sms_counters.used + :count <= :most",
            {
                "channel": channel,
                "rule": rule,
                "subject": subject,
                "ends_at_ms": ends_at_ms,
                "count": count,
                "most": most,
            },
        )
    )


async def refund(
    tx: Tx, channel: str, rule: str, subject: str, ends_at_ms: int, count: int
) -> None:
    """Undoes `debit`: nothing was sent."""
    await tx.execute(
        "UPDATE sms_counters SET used = CASE WHEN used > :count THEN used - :count ELSE 0 END"
        " WHERE channel = :channel AND rule = :rule AND subject = :subject"
        " AND window_ends_at_ms = :ends_at_ms",
        {
            "channel": channel,
            "rule": rule,
            "subject": subject,
            "ends_at_ms": ends_at_ms,
            "count": count,
        },
    )


async def note_block(
    tx: Tx, channel: str, rule: str, subject: str, now_ms: int, ends_at_ms: int
) -> bool:
    """Counts a message that a limit has stopped; True for the first until the limit's end."""
    refused = await tx.fetch_val(
        "INSERT INTO sms_blocks (channel, rule, subject, began_at_ms, ends_at_ms, refused)"
        " VALUES (:channel, :rule, :subject, :now_ms, :ends_at_ms, 1)"
        " ON CONFLICT (channel, rule, subject) DO UPDATE SET"
        " refused = CASE WHEN sms_blocks.ends_at_ms > :now_ms THEN sms_blocks.refused + 1 ELSE 1 END,"
        " began_at_ms = CASE WHEN sms_blocks.ends_at_ms > :now_ms THEN sms_blocks.began_at_ms"
        " ELSE :now_ms END,"
        " ends_at_ms = :ends_at_ms RETURNING refused",
        {
            "channel": channel,
            "rule": rule,
            "subject": subject,
            "now_ms": now_ms,
            "ends_at_ms": ends_at_ms,
        },
    )
    return bool(refused == 1)


async def list_blocks(tx: Tx, channel: str, now_ms: int) -> list[Block]:
    """The limits that stop messages now, the oldest first."""
    rows = await tx.fetch_all(
        "SELECT rule, subject, began_at_ms, ends_at_ms, refused FROM sms_blocks"
        " WHERE channel = :channel AND ends_at_ms > :now_ms ORDER BY began_at_ms, rule, subject",
        {"channel": channel, "now_ms": now_ms},
    )
    return [Block(**{name: row[name] for name in row.keys()}) for row in rows]


async def lift(tx: Tx, channel: str, block: Block) -> None:
    """Ends a block, and begins to count anew what had reached its limit."""
    key = {"channel": channel, "rule": block.rule, "subject": block.subject}
    where = " WHERE channel = :channel AND rule = :rule AND subject = :subject"
    await tx.execute(f"DELETE FROM sms_blocks{where}", key)
    await tx.execute(f"DELETE FROM sms_counters{where}", key)


async def purge(tx: Tx, table: str, before_ms: int, most: int) -> int:
    """Deletes rows of a table from before that time."""
    which = limited_delete(table, f"{AGES[table]} < :before_ms", tx.dialect)
    return await tx.execute(
        f"DELETE FROM {table} WHERE {which}", {"before_ms": before_ms, "most": most}
    )
