"""The SQL of short codes of start payloads."""

from msgsvc_core.db import Tx
from msgsvc_core.security.sealed import SealedColumn

SEALED = SealedColumn(
    table="core_start_codes",
    column="sealed",
    key=("digest",),
    holds="{count} code(s) that people type to start a bot",
    if_lost="nothing: the codes are unknown, and people start over",
    is_lasting=False,
)


async def save(tx: Tx, digest: str, sealed: str, expires_at_ms: int) -> None:
    """Stores the payload of a short code; a repeated call extends its lifetime."""
    await tx.execute(
        "INSERT INTO core_start_codes (digest, sealed, expires_at_ms)"
        " VALUES (:digest, :sealed, :expires_at_ms)"
        " ON CONFLICT (digest) DO UPDATE SET sealed = :sealed, expires_at_ms = :expires_at_ms",
        {"digest": digest, "sealed": sealed, "expires_at_ms": expires_at_ms},
    )


async def find(tx: Tx, digests: list[str], now_ms: int) -> str | None:
    """The encrypted payload of a code, by its digest under any key."""
    for digest in digests:
        found: str | None = await tx.fetch_val(
            "SELECT sealed FROM core_start_codes WHERE digest = :digest AND expires_at_ms > :now_ms",
            {"digest": digest, "now_ms": now_ms},
        )
        if found is not None:
            return found
    return None
