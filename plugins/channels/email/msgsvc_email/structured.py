"""The grammar of structured fields (RFC 5322, section 3): comments, quoted strings, addresses."""

import re
from collections.abc import Iterable
from itertools import islice

from msgsvc_core.kernel import email
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_email.mail import Head, decoded_words

#: What structures a field: an escaped character, a quotation mark, a bracket of a comment.
_MARKS = re.compile(r'(\\.|["()])', re.DOTALL)
_IN_BRACKETS = re.compile(r"([^<>]*)<\s*+([^<>\s]*+)\s*+>\s*+")
_BARE = re.compile(r"\s*([^\s<>,;:]+)\s*")

#: What stands between addresses.
_BETWEEN = re.compile(r'[\s<>(),;:"]+')

#: Addresses that are looked at of all that a mail was sent to.
MAX_RECIPIENTS = 1_000

#: Fields that name whom the server delivered to.
RECIPIENTS = ("to", "cc", "delivered-to", "x-original-to", "envelope-to")


def bare(value: str) -> str:
    """A field without quoted strings and comments; empty if they don't end.

    Comments nest, so no expression finds them; this looks at each character once.
    """
    depth, quoted = 0, False
    kept: list[str] = []
    for part in _MARKS.split(value):
        if part == '"' and not depth:
            quoted = not quoted
        elif quoted:
            continue
        elif part == "(":
            depth += 1
        elif part == ")":
            depth -= 1
            if depth < 0:
                return ""
        elif not depth:
            kept.append(part)
    return "" if depth or quoted else " ".join(kept)


def sender_in(value: str) -> tuple[str, str] | None:
    """Name and address of a `From` with exactly one; None for anything else.

    A field that programs read in different ways is refused: `ann@a.example <bob@b.example>`. Only the
    comma of `Lee, Ann <ann@a.example>` is forgiven, which is against the standard and common.
    """
    plain = bare(value)
    found = _IN_BRACKETS.fullmatch(plain)
    if found is not None:
        phrase, written = found[1].strip(), found[2]
        if "@" in phrase and phrase.casefold() != written.casefold():
            return None
        name = decoded_words(value.rpartition("<")[0]).strip().strip('"').replace('\\"', '"')
    elif found := _BARE.fullmatch(plain):
        name, written = "", found[1]
    else:
        return None
    address = next(iter(normalized([written])), None)
    return None if address is None else (" ".join(name.split()), address)


def recipients(head: Head) -> list[str]:
    """What may be an address in the fields that say whom a mail was sent to."""
    return addresses_in(*(value for name in RECIPIENTS for value in head.all(name)))


def addresses_in(*texts: str) -> list[str]:
    """What may be an address in texts, at most `MAX_RECIPIENTS`."""
    words = (word for text in texts for word in _BETWEEN.split(text) if "@" in word)
    return list(islice(words, MAX_RECIPIENTS))


def normalized(addresses: Iterable[str]) -> list[str]:
    """Those that are addresses, in their normal form."""
    found = []
    for address in addresses:
        try:
            found.append(email.normalized(address))
        except InvalidValue:
            continue
    return found
