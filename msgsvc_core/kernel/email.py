"""Email addresses as people write them, made comparable."""

import re
import unicodedata

from msgsvc_core.kernel.errors import InvalidValue

#: Characters of an address, and of what stands before its `@` (RFC 5321, section 4.5.3.1).
MAX_LENGTH, MAX_LOCAL_LENGTH = 254, 64

_LOCAL = re.compile(r"[^\s@\"(),:;<>\[\]\\.]+(?:\.[^\s@\"(),:;<>\[\]\\.]+)*")
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")


def normalized(text: str) -> str:
    """The address without spaces at its ends, in small letters, its domain as DNS has it.

    Small letters before the `@` too: mailboxes that differ in nothing else are of the same person
    everywhere that matters. Raises ValueError for what can be no address; quoted names and addresses in
    brackets, which nobody has, are refused with it.
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
