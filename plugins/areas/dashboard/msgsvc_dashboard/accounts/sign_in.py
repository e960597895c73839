"""Signing in: by password, or by whatever else has shown who it is; then the second factor, if there is
one; then a session."""

import json
from typing import Any

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.security import SecretBox
from msgsvc_core.security.secret_box import DecryptionError
from msgsvc_dashboard.accounts import credential_store, store
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.models import (
    Account,
    Browser,
    CodeNeeded,
    Outcome,
    Refused,
    SignedIn,
    TooMany,
    Way,
)
from msgsvc_dashboard.accounts.passwords import Passwords, check_password
from msgsvc_dashboard.accounts.second_factor import SecondFactor
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.settings import AccountSettings

#: Milliseconds between the password and the code.
TICKET_MS = 10 * 60 * 1000


class SignIn:
    """`service.get(SignIn)`. What asks for a password takes no transaction: comparing takes a while."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        settings: AccountSettings,
        accounts: Accounts,
        account_links: AccountLinks,
        audit: Audit,
        second_factor: SecondFactor,
        messenger_sign_in: MessengerSignIn,
        throttle: Throttle,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._accounts = accounts
        self._account_links = account_links
        self._audit = audit
        self._second_factor = second_factor
        self._messenger_sign_in = messenger_sign_in
        self.passwords = Passwords(settings)
        self.throttle = throttle

    async def by_password(self, email: str, password: str, browser: Browser) -> Outcome:
        """Whether that is somebody's password. Raises `Unavailable`."""
        try:
            known = normalized(email)
        except ValueError:
            known = ""
        async with self._db.read() as tx:
            account = await store.find_by_email(tx, known) if known else None
            kept = await credential_store.find(tx, account.account_id) if account else None
        waits = await self.throttle.password(
            known or "none", account.account_id if account else None, browser
        )
        if waits is not None:
            return waits
        fits = await self.passwords.fits(kept.password_hash if kept else None, password)
        if account is None or kept is None or not fits or account.status != "active":
            # Also where there is no account: what is left out would show in the time.
            await self._note_failure(account, browser, way="password")
            return Refused()
        await self._rehash(account.account_id, kept.password_hash or "", password)
        async with self._db.transaction() as tx:
            # Comparing took a while, in which the password may have been changed, and sessions ended.
            now = await credential_store.lock(tx, account.account_id)
            present = await store.find(tx, account.account_id)
            if now is None or present is None or now.password_set_at_ms != kept.password_set_at_ms:
                return Refused()
            return await self.enter(tx, present, browser, "password")

    async def enter(
        self, tx: Tx, account: Account, browser: Browser, way: Way
    ) -> SignedIn | CodeNeeded | Refused:
        """What comes next for somebody who has shown who they are."""
        kept = await credential_store.find(tx, account.account_id)
        if kept is None or account.status != "active":
            return Refused()
        if kept.totp_confirmed_at_ms is not None:
            until_ms = self._clock.now_ms() + TICKET_MS
            ticket = [account.account_id, way, until_ms, kept.password_set_at_ms]
            return CodeNeeded(self._secrets.encrypt(json.dumps(ticket)))
        return await self._open(tx, account, browser, way=way)

    async def by_code(self, ticket: str, code: str, browser: Browser) -> Outcome:
        """The second step. `Refused` for a wrong code, and for a ticket that is too old."""
        read = self._read(ticket)
        if read is None:
            return Refused()
        account_id, way, set_at_ms = read
        waits = await self.throttle.code(account_id, browser)
        if waits is not None:
            return waits
        async with self._db.transaction() as tx:
            kept = await credential_store.lock(tx, account_id)
            account = await store.find(tx, account_id)
            # Who changes the password ends what was begun with the old one.
            if account is None or kept is None or kept.password_set_at_ms != set_at_ms:
                return Refused()
            used = await self._second_factor.take(tx, account_id, code)
            if account.status == "active" and used is not None:
                return await self._open(tx, account, browser, way=way, code=used)
        await self._note_failure(account, browser, way="code")
        return Refused()

    def is_waiting(self, ticket: str) -> bool:
        """Whether a code may still be entered with that ticket."""
        return self._read(ticket) is not None

    async def check_own(self, account_id: str, password: str, browser: Browser) -> TooMany | bool:
        """Whether it is the password of somebody who is signed in: asked before what must be theirs."""
        async with self._db.read() as tx:
            kept = await credential_store.find(tx, account_id)
        # By the session's account, apart from those who can't get in.
        waits = await self.throttle.code(f"password:{account_id}", browser)
        if waits is not None:
            return waits
        return await self.passwords.fits(kept.password_hash if kept else None, password)

    async def check_own_code(self, account_id: str, code: str, browser: Browser) -> TooMany | bool:
        """The same of a code of the app or a recovery code, which it uses up: for who has no password."""
        waits = await self.throttle.code(f"own code:{account_id}", browser)
        if waits is not None:
            return waits
        async with self._db.transaction() as tx:
            await credential_store.lock(tx, account_id)
            return await self._second_factor.take(tx, account_id, code) is not None

    async def hashed(self, password: str, email: str) -> str:
        """What `set_password` takes. Raises `ValidationFailed` for a password that is soon guessed."""
        return await self.passwords.hashed(check_password(password, email))

    async def set_password(
        self, tx: Tx, account_id: str, hashed: str, *, session_id: str = ""
    ) -> int:
        """Changes it; returns how many sessions ended by that: all but `session_id`.

        What else would still let somebody in ends too: one-time links, and a Yes that is waited for.
        """
        await credential_store.set_password(tx, account_id, hashed, self._clock.now_ms())
        await self._account_links.end_of_account(tx, account_id)
        await self._messenger_sign_in.end_waiting(tx, account_id)
        return await self._accounts.end_others(tx, account_id, session_id)

    async def reset(self, tx: Tx, account_id: str) -> None:
        """Ends whatever signs an account in beside its password, for who has lost it to somebody: its
        sessions, its links, its messengers."""
        await self._account_links.end_of_account(tx, account_id)
        await self._messenger_sign_in.unlink_all(tx, account_id)
        await self._accounts.end_others(tx, account_id, "")

    async def _open(self, tx: Tx, account: Account, browser: Browser, **detail: Any) -> SignedIn:
        session, token = await self._accounts.open_session(
            tx, account.account_id, ip=browser.ip, user_agent=browser.user_agent
        )
        now_ms = self._clock.now_ms()
        await store.update(tx, account.account_id, {"signed_in_at_ms": now_ms})
        await self._audit.write(
            tx,
            "account.signed_in",
            account_id=account.account_id,
            target=session.session_id,
            detail=detail,
            ip=browser.ip,
        )
        return SignedIn(session, token, self.throttle.new_device(account.account_id))

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
        if not self.passwords.is_dated(kept):
            return
        try:
            renewed = await self.hashed(password, "")
        except ValidationFailed:
            # It was taken by older rules. It still is theirs.
            return
        async with self._db.transaction() as tx:
            await credential_store.rehash(tx, account_id, kept, renewed)

    def _read(self, ticket: str) -> tuple[str, Way, int | None] | None:
        try:
            account_id, way, until_ms, set_at_ms = json.loads(self._secrets.decrypt(ticket))
        except (DecryptionError, ValueError):
            return None
        return (account_id, way, set_at_ms) if until_ms > self._clock.now_ms() else None
