"""Validates and normalizes email addresses."""

import re
import unicodedata

from msgsvc_core.kernel.errors import InvalidValue

#: Maximum characters of an address, and of its local part (RFC 5321, section 4.5.3.1).
MAX_LENGTH, MAX_LOCAL_LENGTH = 254, 64

_LOCAL = re.compile(r"[^\s@\"(),:;<>\[\]\\.]+(?:\.[^\s@\"(),:;<>\[\]\\.]+)*")
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")


def normalized(text: str) -> str:
    """The address without surrounding spaces, in lower case, its domain in the form of DNS.

    The local part is lower-cased too: in practice, mailboxes that differ only in case belong to the same
    person. Raises ValueError for an invalid address, and for quoted local parts and IP addresses in brackets,
    which are not in use.
    """
    local, at, domain = unicodedata.normalize("NFC", text.strip()).rpartition("@")
    local = local.lower()
    try:
        domain = domain.encode("idna").decode().lower()
    except UnicodeError:
        domain = ""
    labels = domain.split(".")
    address = local + at + domain
    if not (
        at
        and len(local.encode()) <= MAX_LOCAL_LENGTH
        and len(address.encode()) <= MAX_LENGTH
        and local.isprintable()
        and _LOCAL.fullmatch(local)
        and len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        and not labels[-1].isdigit()
    ):
        raise InvalidValue("must be an email address, as ann@shop.example")
    return address
