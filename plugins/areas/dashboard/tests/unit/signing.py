"""Ann's account, and the parts of the plugin that let her in."""

from typing import Any

from msgsvc_dashboard.accounts import (
    Account,
    AccountLinks,
    Accounts,
    AccountSession,
    Audit,
    MessengerSignIn,
    PasswordChanges,
    SecondFactor,
    SignIn,
    Team,
    totp,
)
from msgsvc_dashboard.accounts.models import Browser
from msgsvc_dashboard.accounts.owner_checks import OwnerChecks
from msgsvc_dashboard.plugin import DashboardPlugin
from msgsvc_devkit.core import MemoryCore

PASSWORD = "a winter evening by the sea"
HOME = Browser("203.0.113.7", "Firefox")


def plugin_of(core: MemoryCore) -> DashboardPlugin:
    """The plugin's object in that core."""
    loaded = core.service.plugins.get_plugins()
    [plugin] = [each for each in loaded if isinstance(each, DashboardPlugin)]
    return plugin


class Parts:
    """What manages accounts."""

    def __init__(self, plugin: DashboardPlugin) -> None:
        self.accounts = plugin.get(Accounts)
        self.account_links = plugin.get(AccountLinks)
        self.audit = plugin.get(Audit)
        self.second_factor = plugin.get(SecondFactor)
        self.messenger_sign_in = plugin.get(MessengerSignIn)
        self.sign_in = plugin.get(SignIn)
        self.password_changes = plugin.get(PasswordChanges)
        self.owner_checks = plugin.get(OwnerChecks)
        self.team = plugin.get(Team)


class Ann:
    """Each method has a transaction of its own."""

    def __init__(self, core: MemoryCore, account: Account) -> None:
        self.core, self.account = core, account
        self.account_id = account.account_id
        self.plugin = plugin_of(core)
        self.parts = Parts(self.plugin)

    async def set_password(self, password: str = PASSWORD) -> None:
        """Ends all sessions."""
        hashed = await self.parts.password_changes.hashed(password, self.account.email)
        async with self.core.db.transaction() as tx:
            await self.parts.password_changes.set_password(tx, self.account_id, hashed)

    async def enrol(self) -> tuple[str, list[str]]:
        """The app's secret, and the recovery codes."""
        async with self.core.db.transaction() as tx:
            secret = await self.parts.second_factor.offer(tx, self.account)
            codes = await self.parts.second_factor.confirm(tx, self.account_id, self.code(secret))
        return secret, codes

    def code(self, secret: str) -> str:
        """What the app shows now."""
        return totp.code_at(secret, self.core.clock.now_ms() // 30_000)

    async def disable(self) -> None:
        async with self.core.db.transaction() as tx:
            await self.parts.accounts.set_active(tx, self.account_id, active=False)

    async def open_session(self) -> tuple[AccountSession, str]:
        """A browser in which she is signed in, and its secret."""
        async with self.core.db.transaction() as tx:
            return await self.parts.accounts.open_session(
                tx, self.account_id, ip=HOME.ip, user_agent=HOME.user_agent
            )

    async def sessions(self) -> list[AccountSession]:
        """The browsers in which she is signed in."""
        async with self.core.db.read() as tx:
            return await self.parts.accounts.sessions_of(tx, self.account_id)


async def audited(core: MemoryCore) -> list[dict[str, Any]]:
    """The rows of the audit log, in order."""
    async with core.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM dashboard_audit ORDER BY rowid")
    return [dict(row) for row in rows]


async def actions(core: MemoryCore) -> list[str]:
    """What the audit log says was done, in order."""
    return [row["action"] for row in await audited(core)]
