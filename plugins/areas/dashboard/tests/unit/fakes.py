"""The plugin's own parts with their rows in memory, for the parts that use them."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any
from zoneinfo import available_timezones

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_dashboard.accounts import (
    Account,
    AccountLinks,
    Accounts,
    AccountSession,
    CredentialStore,
)
from msgsvc_dashboard.accounts.links import LASTS_MS
from msgsvc_dashboard.accounts.models import LinkPurpose, OneTimeLink, Secrets
from msgsvc_devkit import FakeClock, plugin_context


class AccountsInMemory(Accounts):
    """`by_id` holds the accounts, `sessions` who is signed in, by the secret of the browser."""

    def __init__(self, *accounts: Account, clock: Clock | None = None) -> None:
        core = plugin_context(clock=clock)
        self.by_id = {account.account_id: account for account in accounts}
        self.sessions: dict[str, AccountSession] = {}
        #: Called with the id of each account that is made.
        self.on_added: Callable[[str], None] = lambda _account_id: None
        super().__init__(
            clock=core.clock,
            db=core.db,
            session_days=14,
            projects=core.projects,
            members=core.members,
            billing=core.billing,
        )

    def add(self, email: str, **fields: Any) -> Account:
        """A new account."""
        made = Account(
            account_id=new_id("acc"),
            email=email,
            name=fields.pop("name", "Ann"),
            is_operator=False,
            status=fields.pop("status", "active"),
            lang=None,
            timezone=None,
            created_at_ms=self._clock.now_ms(),
            **fields,
        )
        self.by_id[made.account_id] = made
        self.on_added(made.account_id)
        return made

    async def create(self, tx: Tx, *, email: str, name: str, is_operator: bool = False) -> Account:
        return self.add(email, name=name)

    async def find(self, tx: Tx, account_id: str) -> Account:
        if account_id not in self.by_id:
            raise NotFound("there is no account {account_id!r}", account_id=account_id)
        return self.by_id[account_id]

    async def find_many(self, tx: Tx, account_ids: Collection[str]) -> dict[str, Account]:
        return {each: self.by_id[each] for each in account_ids if each in self.by_id}

    async def find_by_email(self, tx: Tx, email: str) -> Account | None:
        return next((each for each in self.by_id.values() if each.email == email), None)

    async def change(self, tx: Tx, account_id: str, **changes: Any) -> None:
        self.by_id[account_id] = replace(await self.find(tx, account_id), **changes)

    async def learn_timezone(self, account: Account, timezone: str) -> None:
        if account.timezone is None and timezone in available_timezones():
            self.by_id[account.account_id] = replace(account, timezone=timezone)

    async def open_session(
        self, tx: Tx, account_id: str, *, ip: str, user_agent: str
    ) -> tuple[AccountSession, str]:
        now_ms, account = self._clock.now_ms(), await self.find(tx, account_id)
        ends_ms = now_ms + self._session_days * 24 * 3600 * 1000
        opened = AccountSession(new_id("ase"), account, now_ms, now_ms, ends_ms, ip, user_agent)
        token = new_token()
        self.sessions[token] = opened
        return opened, token

    async def session_of(self, tx: Tx, token: str) -> AccountSession | None:
        return self.sessions.get(token)

    async def visit(self, token: str) -> AccountSession | None:
        return self.sessions.get(token)

    async def sessions_of(self, tx: Tx, account_id: str) -> list[AccountSession]:
        return [each for each in self.sessions.values() if each.account.account_id == account_id]

    async def end_session(self, tx: Tx, account_id: str, session_id: str) -> None:
        for token, each in list(self.sessions.items()):
            if (each.account.account_id, each.session_id) == (account_id, session_id):
                del self.sessions[token]

    async def end_others(self, tx: Tx, account_id: str, session_id: str) -> int:
        theirs = await self.sessions_of(tx, account_id)
        ended = [each.session_id for each in theirs if each.session_id != session_id]
        for each in ended:
            await self.end_session(tx, account_id, each)
        return len(ended)


class CredentialsInMemory(CredentialStore):
    """`by_id` holds what each account is known by, `codes` the digests of its recovery codes, `steps` the
    step of the last code that was taken."""

    def __init__(self, *account_ids: str) -> None:
        self.by_id: dict[str, Secrets] = {}
        for account_id in account_ids:
            self.add(account_id)
        self.codes: dict[str, set[str]] = {}
        self.steps: dict[str, int] = {}

    def add(self, account_id: str) -> None:
        """An account without a password and a second factor."""
        self.by_id[account_id] = Secrets(None, None, None, None)

    async def find(self, tx: Tx, account_id: str) -> Secrets | None:
        return self.by_id.get(account_id)

    async def lock(self, tx: Tx, account_id: str) -> Secrets | None:
        return self.by_id.get(account_id)

    async def set_password(self, tx: Tx, account_id: str, password_hash: str, now_ms: int) -> None:
        before_ms = self.by_id[account_id].password_set_at_ms
        set_at_ms = now_ms if before_ms is None or before_ms < now_ms else before_ms + 1
        self._change(account_id, password_hash=password_hash, password_set_at_ms=set_at_ms)

    async def rehash(self, tx: Tx, account_id: str, before: str, after: str) -> None:
        if self.by_id[account_id].password_hash == before:
            self._change(account_id, password_hash=after)

    async def offer_totp(self, tx: Tx, account_id: str, secret: str) -> bool:
        if self.by_id[account_id].totp_confirmed_at_ms is not None:
            return False
        self.steps.pop(account_id, None)
        self._change(account_id, totp_secret=secret)
        return True

    async def confirm_totp(self, tx: Tx, account_id: str, step: int, now_ms: int) -> bool:
        kept = self.by_id[account_id]
        if kept.totp_secret is None or kept.totp_confirmed_at_ms is not None:
            return False
        self.steps[account_id] = step
        self._change(account_id, totp_confirmed_at_ms=now_ms)
        return True

    async def take_step(self, tx: Tx, account_id: str, step: int) -> bool:
        is_new = self.steps.get(account_id, -1) < step
        if is_new:
            self.steps[account_id] = step
        return is_new

    async def drop_totp(self, tx: Tx, account_id: str) -> None:
        self.codes.pop(account_id, None)
        self._change(account_id, totp_secret=None, totp_confirmed_at_ms=None)

    async def replace_codes(self, tx: Tx, account_id: str, digests: Iterable[str]) -> None:
        self.codes[account_id] = set(digests)

    async def use_code(self, tx: Tx, account_id: str, digests: list[str]) -> bool:
        theirs = self.codes.get(account_id, set())
        found = theirs & set(digests)
        theirs -= found
        return bool(found)

    async def count_codes(self, tx: Tx, account_id: str) -> int:
        return len(self.codes.get(account_id, ()))

    def renew_totp(self, account_id: str, sealed: str | None) -> None:
        """As the rotation of the secret keys does."""
        self._change(account_id, totp_secret=sealed)

    def _change(self, account_id: str, **fields: Any) -> None:
        self.by_id[account_id] = replace(self.by_id[account_id], **fields)


class LinksInMemory(AccountLinks):
    """`by_token` holds the links that still work."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self.by_token: dict[str, OneTimeLink] = {}
        super().__init__(
            clock=clock or FakeClock(), base_url="http://msgsvc.test", accounts=AccountsInMemory()
        )

    async def for_account(self, tx: Tx, account_id: str, purpose: LinkPurpose) -> str:
        return self._put(purpose, account_id, None, None)

    async def for_member(self, tx: Tx, project_id: str, member_id: str) -> str:
        await self.end_of_member(tx, project_id, member_id)
        return self._put("invitation", None, project_id, member_id)

    async def find(self, tx: Tx, token: str) -> OneTimeLink:
        if token not in self.by_token:
            raise NotFound("this link was used, or has expired; ask for a new one")
        return self.by_token[token]

    async def use(self, tx: Tx, token: str) -> OneTimeLink:
        found = await self.find(tx, token)
        del self.by_token[token]
        return found

    async def end_of_account(self, tx: Tx, account_id: str) -> None:
        self._drop([t for t, each in self.by_token.items() if each.account_id == account_id])

    async def end_of_member(self, tx: Tx, project_id: str, member_id: str) -> None:
        invited = (project_id, member_id)
        found = self.by_token.items()
        self._drop([t for t, each in found if (each.project_id, each.member_id) == invited])

    async def invited(self, tx: Tx, project_id: str) -> dict[str, int]:
        return {
            each.member_id: each.expires_at_ms
            for each in self.by_token.values()
            if each.project_id == project_id and each.member_id is not None
        }

    def _put(
        self,
        purpose: LinkPurpose,
        account_id: str | None,
        project_id: str | None,
        member_id: str | None,
    ) -> str:
        token = new_token()
        ends_ms = self._clock.now_ms() + LASTS_MS[purpose]
        self.by_token[token] = OneTimeLink(purpose, account_id, project_id, member_id, ends_ms)
        return token

    def _drop(self, tokens: list[str]) -> None:
        for token in tokens:
            del self.by_token[token]
