"""Accounts for the core and other plugins (hook `register_accounts`)."""

from collections.abc import Collection, Mapping, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.plugins.accounts import AccountSummary
from msgsvc_core.projects.models import Project
from msgsvc_dashboard.accounts.models import Account
from msgsvc_dashboard.accounts.service import Accounts


class PublishedAccounts:
    """The core's `AccountSource`."""

    def __init__(self, *, accounts: Accounts) -> None:
        self._accounts = accounts

    async def find_many(self, tx: Tx, account_ids: Collection[str]) -> Mapping[str, AccountSummary]:
        found = await self._accounts.find_many(tx, account_ids)
        return {account_id: _summary(account) for account_id, account in found.items()}

    async def find_by_email(self, tx: Tx, email: str) -> AccountSummary:
        return _summary(await self._accounts.by_email(tx, email))

    async def page(
        self, tx: Tx, email_prefix: str, after: str | None, limit: int
    ) -> Sequence[AccountSummary]:
        found = await self._accounts.page(tx, after, limit, email_prefix)
        return [_summary(account) for account in found]

    async def create_project(self, tx: Tx, account_id: str, name: str) -> Project:
        account = await self._accounts.find(tx, account_id)
        return await self._accounts.create_project(tx, account, name)


def _summary(account: Account) -> AccountSummary:
    return AccountSummary(
        account_id=account.account_id,
        email=account.email,
        name=account.name,
        is_operator=account.is_operator,
        created_at_ms=account.created_at_ms,
    )
