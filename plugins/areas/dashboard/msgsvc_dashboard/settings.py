"""The section `[dashboard]`."""

from pydantic import Field

from msgsvc_core.config.settings import Section


class AccountSettings(Section):
    """Who signs in to the dashboard."""

    session_days: int = Field(
        14, ge=1, le=365, description="Days for which a browser stays signed in."
    )
    tries_per_email: int = Field(
        10,
        ge=1,
        description="Passwords that may be tried for an email in any 900 seconds, from all browsers"
        " together in which its account was never signed in.",
    )
    tries_per_address: int = Field(
        30,
        ge=1,
        description="Passwords that one address may try in any 900 seconds, for whatever email; an IPv6"
        " address counts by its first 64 bits.",
    )
    tries_per_browser: int = Field(
        10,
        ge=1,
        description="Passwords, and apart from them codes, that a browser in which the account was"
        " signed in before may try in any 900 seconds.",
    )
    tries_of_codes: int = Field(
        5,
        ge=1,
        description="Codes of the second factor that may be tried for an account in any 900 seconds"
        " by other browsers.",
    )
    password_memory_kib: int = Field(
        19_456, ge=8, description="KiB of memory that one look at a password takes (argon2id)."
    )
    password_passes: int = Field(
        2, ge=1, description="Passes of argon2id over that memory; with the memory, OWASP's advice."
    )
    audit_days: int = Field(
        365, ge=1, description="Days for which it is kept who changed what in the dashboard."
    )
    messenger_sign_in: bool = Field(
        True, description="Whether people sign in by a messenger that they linked to their account."
    )
