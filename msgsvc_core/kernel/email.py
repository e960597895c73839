"""Validates and normalizes email addresses."""

import re

import idna

from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.unicode_text import normalized as unicode_normalized

#: Maximum characters of an address, and of its local part (RFC 5321, section 4.5.3.1).
MAX_LENGTH, MAX_LOCAL_LENGTH = 254, 64

_LOCAL = re.compile(r"[^\s@\"(),:;<>\[\]\\.]+(?:\.[^\s@\"(),:;<>\[\]\\.]+)*")

#: Domains of Japanese operators, which gave out addresses such as `a..b@` and `a.@`, against RFC 5321.
_DOTTED_DOMAINS = frozenset({"docomo.ne.jp", "ezweb.ne.jp"})
_DOTTED_LOCAL = re.compile(r"[^\s@\"(),:;<>\[\]\\]+")

_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")


def normalized(text: str) -> str:
    """The address without surrounding spaces, in lower case, its domain in the form of DNS.

    The local part is lower-cased too: in practice, mailboxes that differ only in case belong to the same
    person. Raises ValueError for an invalid address, and for quoted local parts and IP addresses in brackets,
    which are not in use.
    """
    composed = unicode_normalized("NFC", text.strip()) or ""
    local, at, domain = composed.rpartition("@")
    local, domain = local.lower(), _in_dns(domain)
    labels = domain.split(".")
    address = local + at + domain
    if not (
        at
        and len(local.encode()) <= MAX_LOCAL_LENGTH
        and len(address.encode()) <= MAX_LENGTH
        and local.isprintable()
        and (_DOTTED_LOCAL if domain in _DOTTED_DOMAINS else _LOCAL).fullmatch(local)
        and len(labels) > 1
        and all(map(_LABEL.fullmatch, labels))
        and not labels[-1].isdigit()
    ):
        raise InvalidValue("must be an email address, as ann@shop.example")
    return address


def _in_dns(domain: str) -> str:
    """A domain as DNS has it, by IDNA 2008 as browsers and registries use it: `straße.example` and
    `strasse.example` may belong to different owners (UTS 46, non-transitional). Empty for what is none."""
    if domain.isascii():
        return domain.lower()
    try:
        return idna.encode(domain, uts46=True, std3_rules=True).decode()
    except idna.IDNAError:
        return ""
