"""The SQL of an account's credentials: password, second factor, recovery codes."""

from collections.abc import Iterable

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import array_param, for_update, in_array
from msgsvc_dashboard.accounts.models import Secrets


class CredentialStore:
    """Statements only; callers decide who may change what."""

    async def find(self, tx: Tx, account_id: str) -> Secrets | None:
        return await self._find(tx, account_id, "")

    async def lock(self, tx: Tx, account_id: str) -> Secrets | None:
        """The same, and nobody else changes it until the transaction ends."""
        return await self._find(tx, account_id, for_update(tx.dialect))

    async def _find(self, tx: Tx, account_id: str, ending: str) -> Secrets | None:
        row = await tx.fetch_one(
            "SELECT password_hash, password_set_at_ms, totp_secret, totp_confirmed_at_ms"
            f" FROM dashboard_accounts WHERE account_id = :account_id{ending}",
            {"account_id": account_id},
        )
        return None if row is None else Secrets(*row)

    async def set_password(self, tx: Tx, account_id: str, password_hash: str, now_ms: int) -> None:
        """Its time is never that of the one before, even where a clock stands still or was set back."""
        await tx.execute(
            "UPDATE dashboard_accounts SET password_hash = :password_hash, password_set_at_ms ="
            " CASE WHEN password_set_at_ms >= :now_ms THEN password_set_at_ms + 1 ELSE :now_ms END"
            " WHERE account_id = :account_id",
            {"account_id": account_id, "password_hash": password_hash, "now_ms": now_ms},
        )

    async def rehash(self, tx: Tx, account_id: str, before: str, after: str) -> None:
        """The same password, kept in another way; unless it was changed meanwhile."""
        await tx.execute(
            "UPDATE dashboard_accounts SET password_hash = :after"
            " WHERE account_id = :account_id AND password_hash = :before",
            {"account_id": account_id, "before": before, "after": after},
        )

    async def offer_totp(self, tx: Tx, account_id: str, secret: str) -> bool:
        """False if a second factor is confirmed already."""
        return bool(
            await tx.execute(
                "UPDATE dashboard_accounts SET totp_secret = :secret, totp_last_step = NULL"
                " WHERE account_id = :account_id AND totp_confirmed_at_ms IS NULL",
                {"account_id": account_id, "secret": secret},
            )
        )

    async def confirm_totp(self, tx: Tx, account_id: str, step: int, now_ms: int) -> bool:
        """False if it was confirmed before, or is offered no more."""
        return bool(
            await tx.execute(
                "UPDATE dashboard_accounts SET totp_confirmed_at_ms = :now_ms, totp_last_step = :step"
                " WHERE account_id = :account_id AND totp_confirmed_at_ms IS NULL"
                " AND totp_secret IS NOT NULL",
                {"account_id": account_id, "step": step, "now_ms": now_ms},
            )
        )

    async def take_step(self, tx: Tx, account_id: str, step: int) -> bool:
        """False if that step's code, or a later one's, was taken before."""
        return bool(
            await tx.execute(
                "UPDATE dashboard_accounts SET totp_last_step = :step WHERE account_id = :account_id"
                " AND totp_confirmed_at_ms IS NOT NULL"
                " AND (totp_last_step IS NULL OR totp_last_step < :step)",
                {"account_id": account_id, "step": step},
            )
        )

    async def drop_totp(self, tx: Tx, account_id: str) -> None:
        """The second factor, and its recovery codes."""
        await tx.execute(
            "UPDATE dashboard_accounts SET totp_secret = NULL, totp_confirmed_at_ms = NULL,"
            " totp_last_step = NULL WHERE account_id = :account_id",
            {"account_id": account_id},
        )
        await self._drop_codes(tx, account_id)

    async def replace_codes(self, tx: Tx, account_id: str, digests: Iterable[str]) -> None:
        await self._drop_codes(tx, account_id)
        rows = [{"account_id": account_id, "digest": digest} for digest in digests]
        await tx.insert_many("dashboard_account_codes", rows)

    async def use_code(self, tx: Tx, account_id: str, digests: list[str]) -> bool:
        """False if there is none of that digest: of each code only one use is true."""
        return bool(
            await tx.execute(
                "DELETE FROM dashboard_account_codes WHERE account_id = :account_id"
                f" AND {in_array('digest', 'digests', tx.dialect)}",
                {"account_id": account_id, "digests": array_param(digests, tx.dialect)},
            )
        )

    async def count_codes(self, tx: Tx, account_id: str) -> int:
        """Recovery codes that are left."""
        return int(
            await tx.fetch_val(
                "SELECT COUNT(*) FROM dashboard_account_codes WHERE account_id = :account_id",
                {"account_id": account_id},
            )
        )

    async def _drop_codes(self, tx: Tx, account_id: str) -> None:
        await tx.execute(
            "DELETE FROM dashboard_account_codes WHERE account_id = :account_id",
            {"account_id": account_id},
        )
