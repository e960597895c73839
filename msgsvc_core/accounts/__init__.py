"""Accounts: who signs in to the dashboard, owns projects, and is a member of others'."""

from msgsvc_core.accounts.audit import Audit
from msgsvc_core.accounts.links import AccountLinks
from msgsvc_core.accounts.messengers import MessengerSignIn
from msgsvc_core.accounts.models import Account, AccountSession
from msgsvc_core.accounts.second_factor import SecondFactor
from msgsvc_core.accounts.service import Accounts
from msgsvc_core.accounts.sign_in import SignIn
from msgsvc_core.accounts.team import Team
from msgsvc_core.billing import Plan

__all__ = [
    "Account",
    "AccountLinks",
    "AccountSession",
    "Accounts",
    "Audit",
    "MessengerSignIn",
    "Plan",
    "SecondFactor",
    "SignIn",
    "Team",
]
