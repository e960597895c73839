"""Models of verified contacts, and their normal forms."""

from dataclasses import dataclass, field, replace
from typing import Literal

from msgsvc_core.kernel import email, phone

ContactKind = Literal["phone", "email"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contacts:
    """The verified phone number (E.164: `+` and digits) and email address of a subscriber, each with Unix
    milliseconds of its last verification; None if unknown. Numbers and addresses are not in the `repr`, which
    may end up in a log."""

    phone: str | None = field(default=None, repr=False)
    phone_verified_at_ms: int | None = None
    email: str | None = field(default=None, repr=False)
    email_verified_at_ms: int | None = None

    def with_contact(self, kind: ContactKind, value: str, verified_at_ms: int) -> "Contacts":
        """With this phone number or address instead of its own."""
        if kind == "phone":
            return replace(self, phone=value, phone_verified_at_ms=verified_at_ms)
        return replace(self, email=value, email_verified_at_ms=verified_at_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRow:
    """A row: `sealed` is the encrypted value, `key_mark` says which secret key encrypted it, and `value_hash`
    is its keyed hash, None in rows of an earlier release."""

    project_id: str
    subscriber_id: str
    kind: ContactKind
    sealed: str = field(repr=False)
    key_mark: str
    value_hash: str | None
    source: str
    verified_at_ms: int


def normalized_contact(kind: ContactKind, value: str, country: str | None = None) -> str:
    """A phone number that a person typed as `+` and digits, an email address in lower case.

    `country` is that of numbers without a country code. Raises `InvalidValue`, which does not repeat the
    value.
    """
    return email.normalized(value) if kind == "email" else phone.normalized(value, country)


def contact_of_platform(kind: ContactKind, value: str) -> str:
    """The same, of a value that a platform has verified: its numbers have a country code."""
    return email.normalized(value) if kind == "email" else phone.from_platform(value)
