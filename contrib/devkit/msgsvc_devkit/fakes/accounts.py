"""A fake of the plugin that stores accounts."""

from collections.abc import Collection, Mapping, Sequence

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.accounts import AccountDirectory, AccountSummary
from msgsvc_core.projects.models import Project
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.projects import FakeProjects


class FakeAccounts(AccountDirectory):
    """`by_id` contains the accounts; `account` adds one. No plan limits the number of their projects."""

    def __init__(self, *, clock: Clock | None = None, projects: FakeProjects | None = None) -> None:
        self._clock = clock or FakeClock()
        self._projects = projects or FakeProjects(clock=clock)
        self.by_id: dict[str, AccountSummary] = {}
        super().__init__(source=lambda: None)

    def account(self, email: str, *, name: str = "", is_operator: bool = False) -> AccountSummary:
        """Adds an account."""
        made = AccountSummary(
            account_id=new_id("acc"),
            email=email,
            name=name or email.partition("@")[0],
            is_operator=is_operator,
            created_at_ms=self._clock.now_ms(),
        )
        self.by_id[made.account_id] = made
        return made

    async def find_many(self, tx: Tx, account_ids: Collection[str]) -> Mapping[str, AccountSummary]:
        return {each: self.by_id[each] for each in account_ids if each in self.by_id}

    async def find_by_email(self, tx: Tx, email: str) -> AccountSummary:
        try:
            wanted = normalized(email)
        except ValueError as error:
            raise ValidationFailed.because(error, field="email") from None
        for account in self.by_id.values():
            if account.email == wanted:
                return account
        raise NotFound("there is no account {email!r}", email=email)

    async def page(
        self, tx: Tx, email_prefix: str, after: str | None, limit: int
    ) -> Sequence[AccountSummary]:
        found = [
            account
            for account_id, account in sorted(self.by_id.items(), reverse=True)
            if account.email.startswith(email_prefix) and (after is None or account_id < after)
        ]
        return found[:limit]

    async def create_project(self, tx: Tx, account_id: str, name: str) -> Project:
        await self.find(tx, account_id)
        project = await self._projects.add(tx, name)
        await self._projects.set_owner(tx, project.project_id, account_id)
        return project
