"""A text encrypted with `secret_keys` when the database was created, which detects that the keys were lost.

Without it, the loss would only be noticed when a webhook could not be signed or a bot not be started. It is
re-encrypted with the current key once an hour, like all secrets.
"""

from msgsvc_core.db import Tx
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import DecryptionError, SecretBox

SEALED = SealedColumn(
    table="core_key_canary",
    column="sealed",
    key=("canary_id",),
    holds="the text by which a loss of the keys is noticed",
    if_lost="nothing: it goes on telling of the loss",
)

CANARY = "what can be read by the keys of this database"


async def plant(tx: Tx, secrets: SecretBox) -> None:
    """Writes the text, unless it exists already."""
    await tx.execute(
        "INSERT INTO core_key_canary (canary_id, sealed) VALUES (1, :sealed)"
        " ON CONFLICT (canary_id) DO NOTHING",
        {"sealed": secrets.encrypt(CANARY)},
    )


async def is_readable(tx: Tx, secrets: SecretBox) -> bool | None:
    """Whether the keys can decrypt it; None before the first start."""
    sealed = await _find(tx)
    if sealed is None:
        return None
    try:
        return secrets.decrypt(sealed) == CANARY
    except DecryptionError:
        return False


async def _find(tx: Tx) -> str | None:
    found: str | None = await tx.fetch_val("SELECT sealed FROM core_key_canary")
    return found
