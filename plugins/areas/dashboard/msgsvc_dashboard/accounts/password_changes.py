"""Sets new passwords of accounts, and ends other access such as sessions."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_dashboard.accounts.credential_store import CredentialStore
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.passwords import Passwords, check_password
from msgsvc_dashboard.accounts.service import Accounts


class PasswordChanges:
    """`service.get(PasswordChanges)`."""

    def __init__(
        self,
        *,
        clock: Clock,
        credentials: CredentialStore,
        passwords: Passwords,
        accounts: Accounts,
        account_links: AccountLinks,
        messenger_sign_in: MessengerSignIn,
    ) -> None:
        self._clock = clock
        self._credentials = credentials
        self._passwords = passwords
        self._accounts = accounts
        self._account_links = account_links
        self._messenger_sign_in = messenger_sign_in

    async def hashed(self, password: str, email: str) -> str:
        """What `set_password` takes. Raises `ValidationFailed` for a password that is soon guessed."""
        return await self._passwords.hashed(check_password(password, email))

    async def set_password(
        self, tx: Tx, account_id: str, hashed: str, *, session_id: str = ""
    ) -> int:
        """Changes it; returns how many sessions ended by that: all but `session_id`.

        What else would still let somebody in ends too: one-time links, and a Yes that is waited for.
        """
        await self._credentials.set_password(tx, account_id, hashed, self._clock.now_ms())
        await self._account_links.end_of_account(tx, account_id)
        await self._messenger_sign_in.end_waiting(tx, account_id)
        return await self._accounts.end_others(tx, account_id, session_id)

    async def reset(self, tx: Tx, account_id: str) -> None:
        """Ends whatever signs an account in beside its password, for who has lost it to somebody: its
        sessions, its links, its messengers."""
        await self._account_links.end_of_account(tx, account_id)
        await self._messenger_sign_in.unlink_all(tx, account_id)
        await self._accounts.end_others(tx, account_id, "")
