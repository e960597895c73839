"""The SQL of used signed data: each signs in once."""

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import limited_delete


async def use(tx: Tx, data_digest: str, expires_at_ms: int) -> bool:
    """False if this data was used before. One of several concurrent calls succeeds."""
    return bool(
        await tx.execute(
            "INSERT INTO auth_mini_app_uses (data_digest, expires_at_ms)"
            " VALUES (:data_digest, :expires_at_ms) ON CONFLICT (data_digest) DO NOTHING",
            {"data_digest": data_digest, "expires_at_ms": expires_at_ms},
        )
    )


async def purge_uses(tx: Tx, expired_before_ms: int, limit: int) -> int:
    """Deletes some records of data that has expired; returns how many."""
    old = limited_delete("auth_mini_app_uses", "expires_at_ms < :expired_before_ms", tx.dialect)
    params = {"expired_before_ms": expired_before_ms, "most": limit}
    return await tx.execute(f"DELETE FROM auth_mini_app_uses WHERE {old}", params)
