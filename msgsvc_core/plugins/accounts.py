"""Accounts, as the core and other plugins see them. A plugin provides them by the hook `register_accounts`.

The core stores ids of accounts that own a project or are a member of one. Without such a plugin there are no
accounts, and all projects belong to the operator.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.projects.models import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSummary:
    """An account. `operator` accounts manage the installation."""

    account_id: str
    email: str
    name: str
    is_operator: bool
    created_at_ms: int


class AccountSource(Protocol):
    """The interface of a plugin that provides accounts."""

    async def find_many(self, tx: Tx, account_ids: Collection[str]) -> Mapping[str, AccountSummary]:
        """The accounts that exist, by their id."""
        ...

    async def find_by_email(self, tx: Tx, email: str) -> AccountSummary:
        """Raises `NotFound`, and `ValidationFailed` for an invalid email."""
        ...

    async def page(
        self, tx: Tx, email_prefix: str, after: str | None, limit: int
    ) -> Sequence[AccountSummary]:
        """Up to `limit` accounts, newest first, whose email starts with `email_prefix`, from before the
        account `after`."""
        ...

    async def create_project(self, tx: Tx, account_id: str, name: str) -> Project:
        """Creates a project that the account owns. Raises `NotFound`, `Conflict` if the plan allows no
        more projects, and `ValidationFailed` for an invalid name."""
        ...


class AccountDirectory:
    """`service.accounts`: the accounts of the plugin that provides them."""

    def __init__(self, *, source: Callable[[], AccountSource | None]) -> None:
        self._find_source = source

    @property
    def are_kept(self) -> bool:
        """Whether a loaded plugin keeps accounts."""
        return self._find_source() is not None

    async def find_sole(self, tx: Tx) -> AccountSummary | None:
        """The only account there is; None if there are several or none."""
        found = await self.page(tx, "", None, 2)
        return found[0] if len(found) == 1 else None

    async def find(self, tx: Tx, account_id: str) -> AccountSummary:
        """Raises `NotFound`."""
        found = (await self.find_many(tx, [account_id])).get(account_id)
        if found is None:
            raise NotFound("there is no account {account_id!r}", account_id=account_id)
        return found

    async def find_many(self, tx: Tx, account_ids: Collection[str]) -> Mapping[str, AccountSummary]:
        """The accounts that exist, by their id."""
        source = self._find_source()
        return {} if source is None else await source.find_many(tx, account_ids)

    async def find_by_email(self, tx: Tx, email: str) -> AccountSummary:
        """Raises `NotFound`, and `ValidationFailed` for an invalid email."""
        return await self._source.find_by_email(tx, email)

    async def page(
        self, tx: Tx, email_prefix: str, after: str | None, limit: int
    ) -> Sequence[AccountSummary]:
        """Up to `limit` accounts, newest first, whose email starts with `email_prefix`, from before the
        account `after`."""
        source = self._find_source()
        return () if source is None else await source.page(tx, email_prefix, after, limit)

    async def create_project(self, tx: Tx, account_id: str, name: str) -> Project:
        """Creates a project that the account owns. Raises `NotFound`, `Conflict` if the plan allows no
        more projects, and `ValidationFailed` for an invalid name."""
        return await self._source.create_project(tx, account_id, name)

    @property
    def _source(self) -> AccountSource:
        source = self._find_source()
        if source is None:
            raise NotFound("there are no accounts: no loaded plugin keeps any")
        return source


@dataclass(frozen=True, slots=True)
class FirstAccount:
    """How `msgsvc init` creates the operator's account (hook `register_first_account`).

    `question` is the prompt for the email in a terminal. `create` takes the path of the configuration and the
    email, and returns the text to print.
    """

    question: str
    create: Callable[[Path, str], Coroutine[Any, Any, str]]
