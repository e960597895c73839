"""The section `[dashboard]`."""

from pathlib import Path
from zoneinfo import available_timezones

from pydantic import Field, field_validator

from msgsvc_core.config.sections import Section


class AccountSettings(Section):
    """Sign-in to the dashboard."""

    name: str = Field(
        "msgsvc",
        min_length=1,
        max_length=64,
        description="Name of this installation in titles of the dashboard and on its sign-in page.",
    )
    accent: str = Field(
        "",
        pattern="^(#[0-9a-fA-F]{6})?$",
        description="Accent colour of the dashboard as `#rrggbb`; adjusted where it could not be read."
        " Empty for the service's own.",
    )
    logo: Path | None = Field(
        None,
        description="File of a PNG or SVG for the top bar and the sign-in page; read at the start.",
    )
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
    gallery: bool = Field(
        False,
        description="Shows every component of the pages in each state at `/dashboard/account/gallery`,"
        " for those who develop pages.",
    )
    timezone: str = Field(
        "UTC",
        description="IANA time zone in which an account reads times until its browser tells its own, e.g. "
        "`Europe/Berlin`.",
    )

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in available_timezones():
            raise ValueError("is no IANA time zone, e.g. Europe/Berlin")
        return value
