"""Somebody with a password, and the parts that let them in."""

from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_dashboard.accounts import (
    Audit,
    MessengerSignIn,
    PasswordChanges,
    SecondFactor,
    SignIn,
    totp,
)
from msgsvc_dashboard.accounts.models import Browser
from msgsvc_dashboard.accounts.owner_checks import OwnerChecks
from msgsvc_dashboard.accounts.passwords import Passwords
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.accounts.tickets import CodeTickets
from msgsvc_dashboard.settings import AccountSettings
from msgsvc_devkit import FakeClock, plugin_context
from msgsvc_devkit.fakes import FakeDatabase, FakeTx, fake_secrets
from plugins.areas.dashboard.tests.unit.browsers import ANN
from plugins.areas.dashboard.tests.unit.fakes import (
    AccountsInMemory,
    CredentialsInMemory,
    LinksInMemory,
)

PASSWORD = "a winter evening by the sea"
HOME = Browser("203.0.113.7", "Firefox")

#: As quick as argon2 gets.
SETTINGS = AccountSettings(password_memory_kib=8, password_passes=1)


class Signing:
    """Ann, who has a password, and the parts that let her in."""

    def __init__(self) -> None:
        self.clock, self.db = FakeClock(), FakeDatabase()
        self.accounts = AccountsInMemory(ANN, clock=self.clock)
        self.credentials = CredentialsInMemory(ANN.account_id)
        self.accounts.on_added = self.credentials.add
        self.passwords = Passwords(SETTINGS)
        self.links = LinksInMemory(clock=self.clock)
        self.second_factor = SecondFactor(
            clock=self.clock, secrets=fake_secrets(), credentials=self.credentials
        )
        self.throttle = Throttle(
            secrets=fake_secrets(), settings=SETTINGS, limiter=MemoryLimiter(self.clock)
        )
        self.tickets = CodeTickets(clock=self.clock, secrets=fake_secrets())

    def sign_in(self) -> SignIn:
        return SignIn(
            db=self.db,
            accounts=self.accounts,
            credentials=self.credentials,
            passwords=self.passwords,
            second_factor=self.second_factor,
            tickets=self.tickets,
            throttle=self.throttle,
            audit=Audit(clock=self.clock),
        )

    def password_changes(self) -> PasswordChanges:
        core = plugin_context()
        return PasswordChanges(
            clock=self.clock,
            credentials=self.credentials,
            passwords=self.passwords,
            accounts=self.accounts,
            account_links=self.links,
            messenger_sign_in=MessengerSignIn(
                clock=self.clock, settings=SETTINGS, channels=core.channels
            ),
        )

    def owner_checks(self) -> OwnerChecks:
        return OwnerChecks(
            db=self.db,
            credentials=self.credentials,
            passwords=self.passwords,
            second_factor=self.second_factor,
            throttle=self.throttle,
        )

    async def set_password(self, password: str = PASSWORD) -> None:
        hashed = await self.passwords.hashed(password)
        await self.credentials.set_password(FakeTx(), ANN.account_id, hashed, self.clock.now_ms())

    async def enrol(self) -> tuple[str, list[str]]:
        """The app's secret, and the recovery codes."""
        tx = FakeTx()
        secret = await self.second_factor.offer(tx, ANN)
        return secret, await self.second_factor.confirm(tx, ANN.account_id, self.code(secret))

    def code(self, secret: str) -> str:
        """What the app shows now."""
        return totp.code_at(secret, self.clock.now_ms() // 30_000)

    @property
    def noted(self) -> list[str]:
        return [row["action"] for row in self.db.rows["dashboard_audit"]]
