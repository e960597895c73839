"""The SQL of processed updates. `channel` is a channel's key."""

from msgsvc_core.db import Tx


async def insert_update(tx: Tx, channel: str, update_id: str, now_ms: int) -> bool:
    """False for an update that was processed before."""
    return bool(
        await tx.execute(
            "INSERT INTO core_updates (channel, update_id, received_at_ms)"
            " VALUES (:channel, :update_id, :now_ms) ON CONFLICT DO NOTHING",
            {"channel": channel, "update_id": update_id, "now_ms": now_ms},
        )
    )


async def has_received(tx: Tx, channel: str, after_ms: int) -> bool:
    """Whether an update was processed after that time."""
    found = await tx.fetch_one(
        "SELECT 1 AS one FROM core_updates WHERE received_at_ms > :after_ms AND channel = :channel"
        " LIMIT 1",
        {"channel": channel, "after_ms": after_ms},
    )
    return found is not None
