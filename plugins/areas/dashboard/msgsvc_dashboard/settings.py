"""The section `[dashboard]`."""

from pydantic import Field

from msgsvc_core.config.settings import Section


class AccountSettings(Section):
    """Sign-in to the dashboard."""

    session_days: int = Field(
        14, ge=1, le=365, description="Days for which a browser stays signed in."
    )
    tries_per_email: int = Field(
        10,
        ge=1,
        description="Password attempts per email in any 900 seconds, over all browsers in which the "
        "account has never been signed in.",
    )
    tries_per_address: int = Field(
        30,
        ge=1,
        description="Password attempts per client address in any 900 seconds, over all emails; an "
        "IPv6 address counts by its first 64 bits.",
    )
    tries_per_browser: int = Field(
        10,
        ge=1,
        description="Password attempts, and separately code attempts, per browser in which the account"
        " was signed in before, in any 900 seconds.",
    )
    tries_of_codes: int = Field(
        5,
        ge=1,
        description="Attempts at the second factor's code per account in any 900 seconds, over all other"
        " browsers.",
    )
    password_memory_kib: int = Field(
        19_456, ge=8, description="KiB of memory for verifying one password (argon2id)."
    )
    password_passes: int = Field(
        2,
        ge=1,
        description="Iterations of argon2id; the defaults of both follow OWASP's recommendation.",
    )
    audit_days: int = Field(
        365, ge=1, description="Days for which the dashboard's audit log is kept."
    )
    messenger_sign_in: bool = Field(
        True, description="Whether accounts can sign in with a linked messenger."
    )
