"""URLs that tenants give: what is an absolute http or https URL that every parser reads alike."""

import re
from urllib.parse import urlsplit

from yarl import URL

from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.security.addresses import parse_address

#: Characters of a URL; longer ones are refused by common servers and browsers.
MAX_URL_LENGTH = 2048


#: Letters and digits of any script, and the underscore of buckets' names; nothing that a parser may take
#: for a dot or a slash, and nothing that ends a directive of a policy.
_LABEL = r"\w([\w-]{0,61}\w)?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")


class WrongUrl(InvalidValue):
    """What a URL is not. A body of which nothing else is wrong is answered with `invalid_url`."""


def check_http_url(url: str) -> str:
    """The same. Raises `WrongUrl` for what is no absolute http or https URL."""
    check_url_length(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"} or port == 0:
        raise WrongUrl("must be an http or https URL")
    # Browsers read a backslash as a slash, and so another host than we do.
    if not url.isprintable() or " " in url or "\\" in url:
        raise WrongUrl("must not hold spaces, backslashes or control characters")
    if not is_plain_host(host):
        raise WrongUrl("must name its host in letters, digits and hyphens")
    return url


def is_plain_host(host: str) -> bool:
    """A name of plain labels that DNS can hold, or an address: what every parser reads alike."""
    if parse_address(host) is not None:
        return True
    if not _HOST.fullmatch(host):
        return False
    try:
        # Names in other scripts stand in headers, and in DNS, as IDNA writes them.
        return bool(idna_host(host))
    except ValueError:
        return False


def idna_host(host: str) -> str:
    """A host's name as DNS has it. Raises ValueError for one that it can't have."""
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
    """The same. Raises `WrongUrl` for what is too long."""
    if len(url) > MAX_URL_LENGTH:
        raise WrongUrl("must be at most {limit} characters", limit=MAX_URL_LENGTH)
    return url
