"""Verifies that the user of a signed-in browser is the owner of the account."""

from msgsvc_core.db import Database
from msgsvc_dashboard.accounts.credential_store import CredentialStore
from msgsvc_dashboard.accounts.models import Browser, TooMany
from msgsvc_dashboard.accounts.passwords import Passwords
from msgsvc_dashboard.accounts.second_factor import SecondFactor
from msgsvc_dashboard.accounts.throttle import Throttle


class OwnerChecks:
    """Called before sensitive changes. Attempts are counted separately from those to sign in."""

    def __init__(
        self,
        *,
        db: Database,
        credentials: CredentialStore,
        passwords: Passwords,
        second_factor: SecondFactor,
        throttle: Throttle,
    ) -> None:
        self._db = db
        self._credentials = credentials
        self._passwords = passwords
        self._second_factor = second_factor
        self._throttle = throttle

    async def is_password(self, account_id: str, password: str, browser: Browser) -> TooMany | bool:
        """Whether it is the password of somebody who is signed in."""
        async with self._db.read() as tx:
            kept = await self._credentials.find(tx, account_id)
        # By the session's account, apart from those who can't get in.
        waits = await self._throttle.code(f"password:{account_id}", browser)
        if waits is not None:
            return waits
        return await self._passwords.fits(kept.password_hash if kept else None, password)

    async def is_code(self, account_id: str, code: str, browser: Browser) -> TooMany | bool:
        """The same of a code of the app or a recovery code, which it uses up: for who has no password."""
        waits = await self._throttle.code(f"own code:{account_id}", browser)
        if waits is not None:
            return waits
        async with self._db.transaction() as tx:
            await self._credentials.lock(tx, account_id)
            return await self._second_factor.take(tx, account_id, code) is not None
