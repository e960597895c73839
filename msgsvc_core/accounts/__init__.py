"""Accounts: who signs in to the dashboard, owns projects, and is a member of others'."""

from msgsvc_core.accounts.models import Account, AccountSession, Plan
from msgsvc_core.accounts.service import Accounts

__all__ = ["Account", "AccountSession", "Accounts", "Plan"]
