"""Accounts, inside."""

from typing import Literal

from msgsvc_core.record import record

AccountStatus = Literal["active", "disabled"]

#: Characters of the name of whoever signs in.
NAME_LENGTH = 100


@record
class Account:
    """Somebody who signs in. They own projects, and are members of their own and of others'.

    `lang` and `timezone` are None until they are chosen; `is_operator` runs the installation.
    """

    account_id: str
    email: str
    name: str
    status: AccountStatus
    is_operator: bool
    lang: str | None
    timezone: str | None
    created_at_ms: int
    signed_in_at_ms: int | None = None
    has_password: bool = False
    has_totp: bool = False


@record
class AccountSession:
    """A browser in which somebody is signed in."""

    session_id: str
    account: Account
    created_at_ms: int
    seen_at_ms: int
    expires_at_ms: int
    ip: str
    user_agent: str


@record
class Plan:
    """What an account may do. None is as many as they like."""

    name: str
    max_projects: int | None = None
    #: Active members of each project.
    max_members: int | None = None
    csv_export: bool = True
