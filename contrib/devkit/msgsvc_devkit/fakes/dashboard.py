"""What the dashboard alone uses: the core's own accounts over a database without tables."""

from msgsvc_core.accounts import (
    AccountLinks,
    Accounts,
    Audit,
    MessengerSignIn,
    SecondFactor,
    SignIn,
    Team,
)
from msgsvc_core.accounts.plans import AccountPlans
from msgsvc_core.accounts.throttle import Throttle
from msgsvc_core.billing import Plan
from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Tx
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.plugins.context import DashboardParts
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.channels import FakeChannels
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.members import FakeMembers
from msgsvc_devkit.fakes.projects import FakeProjects
from msgsvc_devkit.fakes.secrets import fake_secrets


def fake_dashboard_parts(*, clock: FakeClock, config: Settings) -> DashboardParts:
    """Accounts by which nobody can sign in: whoever needs some has a database in the test."""
    db, secrets, members = FakeDatabase(), fake_secrets(), FakeMembers(clock=clock)
    plans = AccountPlans(decide_plan=_decide_nothing)
    accounts = Accounts(
        clock=clock,
        db=db,
        session_days=config.accounts.session_days,
        projects=FakeProjects(clock=clock),
        members=members,
        plans=plans,
    )
    links = AccountLinks(clock=clock, settings=config, accounts=accounts)
    audit = Audit(clock=clock)
    messenger_sign_in = MessengerSignIn(
        clock=clock,
        settings=config,
        channels=FakeChannels(config, clock=clock),
        start_codes=StartCodes(clock=clock, secrets=secrets),
    )
    sign_in = SignIn(
        clock=clock,
        db=db,
        secrets=secrets,
        settings=config,
        accounts=accounts,
        account_links=links,
        audit=audit,
        second_factor=SecondFactor(clock=clock, secrets=secrets),
        messenger_sign_in=messenger_sign_in,
        throttle=Throttle(secrets=secrets, settings=config, limiter=MemoryLimiter(clock)),
    )
    return DashboardParts(
        accounts=accounts,
        account_links=links,
        audit=audit,
        sign_in=sign_in,
        messenger_sign_in=messenger_sign_in,
        team=Team(members=members, accounts=accounts, account_links=links, plans=plans),
        areas=list,
        endpoints=list,
    )


async def _decide_nothing(_tx: Tx, _account_id: str) -> Plan | None:
    return None
