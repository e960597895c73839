"""Models of verified contacts, and their normal forms."""

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from msgsvc_core.kernel import email
from msgsvc_core.kernel.errors import InvalidValue

ContactKind = Literal["phone", "email"]

#: `+`, a country code, which has no leading zero, and at most 15 digits in all (ITU-T E.164, section 6.2).
#: No subscriber number is shorter than 7 digits with its country code.
_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")

#: What people and platforms put between digits.
_SEPARATORS = re.compile(r"[\s().\-\u00a0\u2010-\u2015]+")


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


def normalized_contact(kind: ContactKind, value: str) -> str:
    """A phone number as `+` and digits, an email address in lower case.

    A number without `+` is taken as international: platforms omit it. Raises `InvalidValue`, which does not
    repeat the value.
    """
    if kind == "email":
        return email.normalized(value)
    digits = _SEPARATORS.sub("", value)
    phone = digits if digits.startswith("+") else f"+{digits}"
    if not _PHONE.fullmatch(phone):
        raise InvalidValue("must be a phone number with its country code, as +12025550123")
    return phone
