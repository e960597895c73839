"""The SQL of signing keys. They belong to the installation: every project's issuer publishes the same."""

from collections.abc import Sequence

from msgsvc_core.db import Row, Tx
from msgsvc_oidc.protocol.keys import KeyStatus, SigningKey, jwk_of_text, jwk_text


async def list_keys(tx: Tx) -> list[SigningKey]:
    """All keys, oldest first."""
    rows = await tx.fetch_all(
        "SELECT key_id, alg, status, public_jwk, private_sealed, changed_at_ms FROM oidc_keys"
        " ORDER BY key_id"
    )
    return [_key(row) for row in rows]


async def insert_key(tx: Tx, key: SigningKey) -> bool:
    """False if another process made the key of that algorithm and status."""
    return bool(
        await tx.execute(
            "INSERT INTO oidc_keys (key_id, alg, status, public_jwk, private_sealed, changed_at_ms)"
            " VALUES (:key_id, :alg, :status, :public_jwk, :private_sealed, :changed_at_ms)"
            " ON CONFLICT DO NOTHING",
            {
                "key_id": key.key_id,
                "alg": key.alg,
                "status": key.status,
                "public_jwk": jwk_text(key.public_jwk),
                "private_sealed": key.private_sealed,
                "changed_at_ms": key.changed_at_ms,
            },
        )
    )


async def set_status(
    tx: Tx, key_id: str, before: KeyStatus, after: KeyStatus, *, now_ms: int
) -> bool:
    """False if its status is another one by now."""
    return bool(
        await tx.execute(
            "UPDATE oidc_keys SET status = :after, changed_at_ms = :now_ms"
            " WHERE key_id = :key_id AND status = :before",
            {"key_id": key_id, "before": before, "after": after, "now_ms": now_ms},
        )
    )


async def delete_keys(tx: Tx, keys: Sequence[SigningKey]) -> None:
    for key in keys:
        await tx.execute(
            "DELETE FROM oidc_keys WHERE key_id = :key_id AND status = 'retired'",
            {"key_id": key.key_id},
        )


async def delete_all_keys(tx: Tx) -> None:
    """Also those that sign."""
    await tx.execute("DELETE FROM oidc_keys")


def _key(row: Row) -> SigningKey:
    return SigningKey(
        key_id=row["key_id"],
        alg=row["alg"],
        status=row["status"],
        public_jwk=jwk_of_text(row["public_jwk"]),
        private_sealed=row["private_sealed"],
        changed_at_ms=row["changed_at_ms"],
    )
