"""The second factor: codes of an app, each accepted once, and ten recovery codes."""

import hashlib
import hmac
import secrets

import structlog

from msgsvc_core.dashboard import Viewer
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.security import SecretBox
from msgsvc_core.security.secret_box import DecryptionError
from msgsvc_dashboard.accounts import totp
from msgsvc_dashboard.accounts.credential_store import CredentialStore
from msgsvc_dashboard.accounts.models import Secrets

#: Recovery codes that are given out at once.
CODES = 10

#: Without 0, 1, i, l, o and u, which are misread; ten characters hold 49 bits.
_ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"
_CODE_LENGTH = 10

#: Of codes that were kept under `secret_keys` themselves; they end with their key.
_PURPOSE = "recovery code"

log = structlog.get_logger(__name__)


class SecondFactor:
    """`service.get(SecondFactor)`."""

    def __init__(self, *, clock: Clock, secrets: SecretBox, credentials: CredentialStore) -> None:
        self._clock = clock
        self._secrets = secrets
        self._credentials = credentials

    async def offer(self, tx: Tx, account: Viewer) -> str:
        """A new secret, which counts once a code of it was entered. Raises `Conflict` where one does."""
        secret = totp.new_secret()
        if not await self._credentials.offer_totp(
            tx,
            account.account_id,
            self._secrets.encrypt(secret, _row(account.account_id)),
        ):
            raise Conflict("you have a second factor; remove it before you set up another")
        return secret

    async def offered(self, tx: Tx, account_id: str) -> str | None:
        """The secret that waits for its first code."""
        return self._waiting(account_id, await self._credentials.find(tx, account_id))

    async def confirm(self, tx: Tx, account_id: str, code: str) -> list[str]:
        """Has the second factor asked for from now on; returns the recovery codes, which can't be read
        again. Raises `Conflict` where none is offered, `ValidationFailed` for a wrong code."""
        # Held, so that no other secret takes the place of the one whose code this is.
        secret = self._waiting(account_id, await self._credentials.lock(tx, account_id))
        if secret is None:
            raise Conflict("there is no second factor to confirm; begin again")
        now_ms = self._clock.now_ms()
        step = totp.step_of(secret, code, now_ms)
        if step is None:
            raise ValidationFailed("is not the one that the app shows now", field="code")
        if not await self._credentials.confirm_totp(tx, account_id, step, now_ms):
            raise Conflict("the second factor is confirmed already")
        return await self.renew_codes(tx, account_id)

    async def renew_codes(self, tx: Tx, account_id: str) -> list[str]:
        """New recovery codes in place of those that there were. Raises `Conflict` where there is no second
        factor."""
        # Held, so that the codes are those of the secret that is there in the end.
        kept = await self._credentials.lock(tx, account_id)
        if kept is None or kept.totp_secret is None or kept.totp_confirmed_at_ms is None:
            raise Conflict("there is no second factor")
        secret = self._secrets.decrypt(kept.totp_secret, _row(account_id))
        codes = [_new_code() for _ in range(CODES)]
        await self._credentials.replace_codes(
            tx, account_id, [_digest(secret, code) for code in codes]
        )
        return codes

    async def remove(self, tx: Tx, account_id: str) -> None:
        """Signs in without it from now on."""
        await self._credentials.drop_totp(tx, account_id)

    async def codes_left(self, tx: Tx, account_id: str) -> int:
        return await self._credentials.count_codes(tx, account_id)

    async def take(self, tx: Tx, account_id: str, code: str) -> str | None:
        """Uses up a code of the app, or a recovery code: `app` or `recovery`; None for a wrong one."""
        kept = await self._credentials.find(tx, account_id)
        if kept is None or kept.totp_secret is None or kept.totp_confirmed_at_ms is None:
            return None
        secret, digests = (
            self._readable(account_id, kept.totp_secret),
            self._former_digests(account_id, code),
        )
        if secret is not None:
            step = totp.step_of(secret, code, self._clock.now_ms())
            if step is not None:
                return "app" if await self._credentials.take_step(tx, account_id, step) else None
            digests.append(_digest(secret, code))
        return "recovery" if await self._credentials.use_code(tx, account_id, digests) else None

    def _waiting(self, account_id: str, kept: Secrets | None) -> str | None:
        if kept is None or kept.totp_secret is None or kept.totp_confirmed_at_ms is not None:
            return None
        return self._secrets.decrypt(kept.totp_secret, _row(account_id))

    def _readable(self, account_id: str, sealed: str) -> str | None:
        try:
            return self._secrets.decrypt(sealed, _row(account_id))
        except DecryptionError:
            # A key was taken away too early. `msgsvc account link --forget-codes` lets them in.
            log.error("second_factor_unreadable")
            return None

    def _former_digests(self, account_id: str, code: str) -> list[str]:
        return self._secrets.keyed_hashes(_PURPOSE, f"{account_id}:{_plain(code)}")


def _row(account_id: str) -> tuple[str, str]:
    """What an account's secret is bound to: none can be given another's."""
    return "dashboard_accounts.totp_secret", account_id


def _digest(secret: str, code: str) -> str:
    """Keyed by the app's secret, for whoever has the database alone could try all of 49 bits. It is
    encrypted there, and encrypted anew for a new key; so the codes outlive the old one."""
    return hmac.digest(secret.encode(), f"{_PURPOSE}:{_plain(code)}".encode(), hashlib.sha256).hex()


def _plain(code: str) -> str:
    return "".join(code.lower().replace("-", "").split())


def _new_code() -> str:
    text = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
    return f"{text[:5]}-{text[5:]}"
