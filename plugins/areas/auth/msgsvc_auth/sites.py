"""A site's name in a form that can't mislead users."""

from unicodedata import name
from urllib.parse import urlsplit

from msgsvc_core.kernel.unicode_text import normalized

#: What stands before a label that was written in ASCII (RFC 5890, section 2.3.2.1).
_ACE = "xn--"


def readable_site(url: str) -> str:
    """The host of a callback: in ASCII, unless all of it is Cyrillic.

    Letters of several scripts look alike, so a name in another script, or in two, is shown in punycode:
    ugly, but not another site's.

    >>> readable_site("https://shop.example/back"), readable_site("https://xn--e1afmkfd.xn--p1ai/")
    ('shop.example', 'пример.рф')
    """
    written = urlsplit(url).hostname or ""
    host = (normalized("NFKC", written) or written).lower()
    readable = ".".join(_decoded(label) for label in host.split("."))
    if readable.isascii() or all(_is_cyrillic(letter) for letter in readable):
        return readable
    return ".".join(_encoded(label) for label in host.split("."))


def _is_cyrillic(letter: str) -> bool:
    """A letter of that script, or what all scripts share."""
    return letter in "-.0123456789" or name(letter, "").startswith("CYRILLIC ")


def _decoded(label: str) -> str:
    if not label.startswith(_ACE):
        return label
    try:
        decoded = label.removeprefix(_ACE).encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    # What doesn't come back is no name that a browser would go to, whatever it reads like.
    return decoded if _encoded(decoded) == label else label


def _encoded(label: str) -> str:
    return label if label.isascii() else _ACE + label.encode("punycode").decode("ascii")
