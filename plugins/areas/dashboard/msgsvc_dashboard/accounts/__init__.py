"""Accounts of the dashboard: they sign in, own projects, and are members of projects."""

from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.credential_store import CredentialStore
from msgsvc_dashboard.accounts.links import AccountLinks
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.models import Account, AccountSession
from msgsvc_dashboard.accounts.password_changes import PasswordChanges
from msgsvc_dashboard.accounts.second_factor import SecondFactor
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.accounts.sign_in import SignIn
from msgsvc_dashboard.accounts.team import Team

__all__ = [
    "Account",
    "AccountLinks",
    "AccountSession",
    "Accounts",
    "Audit",
    "CredentialStore",
    "MessengerSignIn",
    "PasswordChanges",
    "SecondFactor",
    "SignIn",
    "Team",
]
