"""Sign-in: by password or another proof of identity, then the second factor, if there is one, then a
session."""

from typing import Any

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.credential_store import CredentialStore
from msgsvc_dashboard.accounts.models import (
    Account,
    Browser,
    CodeNeeded,
    Outcome,
    Refused,
    SignedIn,
    Way,
)
from msgsvc_dashboard.accounts.passwords import Passwords, check_password
from msgsvc_dashboard.accounts.second_factor import SecondFactor
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.accounts.tickets import CodeTickets, Ticket


class SignIn:
    """`service.get(SignIn)`. Methods with a password take no transaction, since verifying takes a while."""

    def __init__(
        self,
        *,
        db: Database,
        accounts: Accounts,
        credentials: CredentialStore,
        passwords: Passwords,
        second_factor: SecondFactor,
        tickets: CodeTickets,
        throttle: Throttle,
        audit: Audit,
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._credentials = credentials
        self._passwords = passwords
        self._second_factor = second_factor
        self._tickets = tickets
        self._throttle = throttle
        self._audit = audit

    async def by_password(self, email: str, password: str, browser: Browser) -> Outcome:
        """Whether that is somebody's password. Raises `Unavailable`."""
        try:
            known = normalized(email)
        except ValueError:
            known = ""
        async with self._db.read() as tx:
            account = await self._accounts.find_by_email(tx, known) if known else None
            kept = await self._credentials.find(tx, account.account_id) if account else None
        waits = await self._throttle.password(
            known or "none", account.account_id if account else None, browser
        )
        if waits is not None:
            return waits
        fits = await self._passwords.fits(kept.password_hash if kept else None, password)
        if account is None or kept is None or not fits or account.status != "active":
            # Also where there is no account: what is left out would show in the time.
            await self._note_failure(account, browser, way="password")
            return Refused()
        await self._rehash(account.account_id, kept.password_hash or "", password)
        async with self._db.transaction() as tx:
            # Comparing took a while, in which the password may have been changed, and sessions ended.
            now = await self._credentials.lock(tx, account.account_id)
            if now is None or now.password_set_at_ms != kept.password_set_at_ms:
                return Refused()
            present = await self._accounts.find(tx, account.account_id)
            return await self.enter(tx, present, browser, "password")

    async def enter(
        self, tx: Tx, account: Account, browser: Browser, way: Way
    ) -> SignedIn | CodeNeeded | Refused:
        """What comes next for somebody who has shown who they are."""
        kept = await self._credentials.find(tx, account.account_id)
        if kept is None or account.status != "active":
            return Refused()
        if kept.totp_confirmed_at_ms is not None:
            ticket = Ticket(account.account_id, way, kept.password_set_at_ms)
            return CodeNeeded(self._tickets.issue(ticket))
        return await self._open(tx, account, browser, way=way)

    async def by_code(self, ticket: str, code: str, browser: Browser) -> Outcome:
        """The second step. `Refused` for a wrong code, and for a ticket that is too old."""
        read = self._tickets.read(ticket)
        if read is None:
            return Refused()
        account_id = read.account_id
        waits = await self._throttle.code(account_id, browser)
        if waits is not None:
            return waits
        async with self._db.transaction() as tx:
            kept = await self._credentials.lock(tx, account_id)
            # Who changes the password ends what was begun with the old one.
            if kept is None or kept.password_set_at_ms != read.password_set_at_ms:
                return Refused()
            account = await self._accounts.find(tx, account_id)
            used = await self._second_factor.take(tx, account_id, code)
            if account.status == "active" and used is not None:
                return await self._open(tx, account, browser, way=read.way, code=used)
        await self._note_failure(account, browser, way="code")
        return Refused()

    def is_waiting(self, ticket: str) -> bool:
        """Whether a code may still be entered with that ticket."""
        return self._tickets.read(ticket) is not None

    async def _open(self, tx: Tx, account: Account, browser: Browser, **detail: Any) -> SignedIn:
        session, token = await self._accounts.open_session(
            tx, account.account_id, ip=browser.ip, user_agent=browser.user_agent
        )
        await self._audit.write(
            tx,
            "account.signed_in",
            account_id=account.account_id,
            target=session.session_id,
            detail=detail,
            ip=browser.ip,
        )
        return SignedIn(session, token, self._throttle.new_device(account.account_id))

    async def _note_failure(self, account: Account | None, browser: Browser, *, way: str) -> None:
        async with self._db.transaction() as tx:
            await self._audit.write(
                tx,
                "account.sign_in_failed",
                account_id=account.account_id if account else None,
                detail={"way": way},
                ip=browser.ip,
            )

    async def _rehash(self, account_id: str, kept: str, password: str) -> None:
        if not self._passwords.is_dated(kept):
            return
        try:
            renewed = await self._passwords.hashed(check_password(password, ""))
        except ValidationFailed:
            # It was taken by older rules. It still is theirs.
            return
        async with self._db.transaction() as tx:
            await self._credentials.rehash(tx, account_id, kept, renewed)
