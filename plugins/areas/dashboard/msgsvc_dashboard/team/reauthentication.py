"""Reauthentication of the signed-in user before sensitive changes of the account."""

from msgsvc_core.dashboard import PageContext
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import RateLimitProject, ValidationFailed
from msgsvc_dashboard.accounts.models import Browser, TooMany
from msgsvc_dashboard.accounts.owner_checks import OwnerChecks
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.frame.gate import account_of

#: Milliseconds after signing in during which who has no password yet may set one, or another way in.
JUST_NOW_MS = 15 * 60_000


class Reauthentication:
    """Verifies the password or code entered with a change of the user's own account."""

    def __init__(
        self, *, clock: Clock, db: Database, accounts: Accounts, owner_checks: OwnerChecks
    ) -> None:
        self._clock = clock
        self._db = db
        self._accounts = accounts
        self._owner_checks = owner_checks

    async def check(self, page: PageContext) -> None:
        """Raises unless it is the owner: by the password, by a code where there is none, and where there
        is neither by having signed in just now."""
        if account_of(page).has_password:
            await self._check_password(page)
        elif account_of(page).has_totp:
            await self._check_code(page)
        else:
            await self._check_signed_in_just_now(page)

    async def _check_signed_in_just_now(self, page: PageContext) -> None:
        async with self._db.read() as tx:
            sessions = await self._accounts.sessions_of(tx, page.viewer.account_id)
        after_ms = self._clock.now_ms() - JUST_NOW_MS
        if not any(
            each.session_id == page.session_id and each.created_at_ms > after_ms
            for each in sessions
        ):
            raise ValidationFailed(
                page._("Sign in again first: you have no password to confirm this with.")
            )

    async def _check_password(self, page: PageContext) -> None:
        """Raises for a wrong one in the field `password`: a browser left open is not its owner."""
        fits = await self._owner_checks.is_password(
            page.viewer.account_id, page.form.text("password"), Browser(page.ip, "")
        )
        _refuse_unless(page, fits, page._("Your password is wrong."))

    async def _check_code(self, page: PageContext) -> None:
        """The same for who has no password, of a code of the second factor in the field `code`."""
        fits = await self._owner_checks.is_code(
            page.viewer.account_id, page.form.text("code"), Browser(page.ip, "")
        )
        _refuse_unless(page, fits, page._("The code is wrong or was already used."))


def _refuse_unless(page: PageContext, fits: TooMany | bool, refusal: str) -> None:
    if isinstance(fits, TooMany):
        raise RateLimitProject(page._("Too many attempts."), retry_after_s=fits.retry_after_s)
    if not fits:
        raise ValidationFailed(refusal)
