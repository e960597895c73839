"""Validation of tenants' URLs: absolute http or https URLs that every parser reads in the same way."""

import re
from urllib.parse import urlsplit

from yarl import URL

from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.security.addresses import parse_address

#: Maximum characters of a URL; common servers and browsers reject longer ones.
MAX_URL_LENGTH = 2048


#: Letters and digits of any script, and the underscore of buckets' names; nothing that a parser may treat as
#: a dot or a slash, and nothing that ends a directive of a content security policy.
_LABEL = r"\w([\w-]{0,61}\w)?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")


class WrongUrl(InvalidValue):
    """The URL is invalid. A body with no other error gets `invalid_url`."""


def check_http_url(url: str) -> str:
    """The URL. Raises `WrongUrl` unless it is an absolute http or https URL."""
    check_url_length(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"} or port == 0:
        raise WrongUrl("must be an http or https URL")
    # Browsers treat a backslash as a slash, and would see another host.
    if not url.isprintable() or " " in url or "\\" in url:
        raise WrongUrl("must not hold spaces, backslashes or control characters")
    if not is_plain_host(host):
        raise WrongUrl("must name its host in letters, digits and hyphens")
    return url


def is_plain_host(host: str) -> bool:
    """Whether the host is a name of plain labels, or an address, which every parser reads in the same way."""
    if parse_address(host) is not None:
        return True
    if not _HOST.fullmatch(host):
        return False
    try:
        # Names in other scripts are encoded as IDNA in headers and DNS.
        return bool(idna_host(host))
    except ValueError:
        return False


def idna_host(host: str) -> str:
    """A host's name in the form of DNS. Raises ValueError if it has none."""
    written = URL.build(scheme="https", host=host).raw_host or ""
    if not written.isascii() or any(len(label) > 63 for label in written.split(".")):
        raise ValueError("the host's name is none that DNS can hold")
    return written


def origin_of(url: str) -> str:
    """Scheme, host and port of an http or https URL, in ASCII, for a header. Raises `WrongUrl`."""
    parts = urlsplit(check_http_url(url))
    host = idna_host(parts.hostname or "")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{parts.port}" if parts.port is not None else "")


def check_url_length(url: str) -> str:
    """The URL. Raises `WrongUrl` if it is too long."""
    if len(url) > MAX_URL_LENGTH:
        raise WrongUrl("must be at most {limit} characters", limit=MAX_URL_LENGTH)
    return url
