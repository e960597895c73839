"""One-time links: to sign in, to set a password, to join a project.

A GET does not use a link, since previews of messengers and mail scanners open links too. The link's page has
a button, and its POST uses the link.
"""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.ids import new_token
from msgsvc_dashboard.accounts import link_store as store
from msgsvc_dashboard.accounts.models import LinkPurpose, OneTimeLink
from msgsvc_dashboard.accounts.service import Accounts, digest_of

HOUR_MS = 3600 * 1000

#: Milliseconds for which a link works: those that open an account less long than invitations, which
#: open nothing that is there already.
LASTS_MS: dict[LinkPurpose, int] = {
    "sign_in": HOUR_MS,
    "password": 24 * HOUR_MS,
    "invitation": 7 * 24 * HOUR_MS,
}


class AccountLinks:
    """`service.get(AccountLinks)`."""

    def __init__(self, *, clock: Clock, base_url: str, accounts: Accounts) -> None:
        self._clock = clock
        self._base_url = base_url
        self._accounts = accounts

    async def for_account(self, tx: Tx, account_id: str, purpose: LinkPurpose) -> str:
        """The secret of a link that signs an account in, or sets its password. Raises `NotFound`."""
        await self._accounts.find(tx, account_id)
        return await self._create(tx, purpose, account_id=account_id)

    async def for_member(self, tx: Tx, project_id: str, member_id: str) -> str:
        """The secret of an invitation; those that the member had before work no more."""
        await store.end_of_member(tx, project_id, member_id)
        return await self._create(tx, "invitation", project_id=project_id, member_id=member_id)

    def url(self, token: str) -> str:
        """Where the link leads to."""
        return f"{self._base_url}/dashboard/link/{token}"

    async def find(self, tx: Tx, token: str) -> OneTimeLink:
        """Raises `NotFound` for a link that was used, has expired, or never was."""
        link = await store.find(tx, digest_of(token), self._clock.now_ms())
        if link is None:
            raise _gone()
        return link

    async def use(self, tx: Tx, token: str) -> OneTimeLink:
        """The link, for whoever uses it first. Raises `NotFound`."""
        link = await self.find(tx, token)
        if not await store.use(tx, digest_of(token), self._clock.now_ms()):
            raise _gone()
        return link

    async def end_of_account(self, tx: Tx, account_id: str) -> None:
        """Has links that open an account work no more."""
        await store.end_of_account(tx, account_id)

    async def end_of_member(self, tx: Tx, project_id: str, member_id: str) -> None:
        """Has the invitations of a member work no more."""
        await store.end_of_member(tx, project_id, member_id)

    async def invited(self, tx: Tx, project_id: str) -> dict[str, int]:
        """When the invitation that is open ends, by the member that it invites."""
        return await store.list_invited(tx, project_id, self._clock.now_ms())

    async def _create(
        self,
        tx: Tx,
        purpose: LinkPurpose,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        member_id: str | None = None,
    ) -> str:
        token = new_token(256)
        expires_at_ms = self._clock.now_ms() + LASTS_MS[purpose]
        link = OneTimeLink(purpose, account_id, project_id, member_id, expires_at_ms)
        await store.insert(tx, link, digest_of(token))
        return token


def _gone() -> NotFound:
    return NotFound("this link was used, or has expired; ask for a new one")
