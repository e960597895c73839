"""Callback URLs: registration, and adding a code to one."""

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

from msgsvc_core.kernel.errors import InvalidUrl
from msgsvc_core.security.http_urls import MAX_URL_LENGTH

#: Parameters that we add. A callback with its own would leave the site to guess whose is whose.
OWN_PARAMETERS = ("code", "state")

#: Letters of any script; nothing that a parser may take for a dot or a slash.
_LABEL = r"[^\W_]([^\W_]|-){0,61}(?<!-)"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def check_callback_url(url: str, *, allow_http: bool) -> None:
    """Raises `InvalidUrl`, with the rule that `url` breaks."""
    problem = _problem(url, allow_http=allow_http)
    if problem:
        raise InvalidUrl(problem, field="callback_url")


def with_code(callback_url: str, code: str, state: str) -> str:
    """The callback that hands over `code`, and `state` if there is one.

    >>> with_code("https://shop.example/back?from=bot", "c0de", "a b")
    'https://shop.example/back?from=bot&code=c0de&state=a+b'
    """
    return _with(callback_url, {"code": code}, state)


def with_denial(callback_url: str, state: str) -> str:
    """The callback that says that the person did not sign in (RFC 6749, section 4.1.2.1).

    >>> with_denial("https://msgsvc.example/oidc/return", "abc")
    'https://msgsvc.example/oidc/return?error=access_denied&state=abc'
    """
    return _with(callback_url, {"error": "access_denied"}, state)


def _with(callback_url: str, added: Mapping[str, str], state: str) -> str:
    parts = urlsplit(callback_url)
    query = urlencode({**added, **({"state": state} if state else {})})
    # The registered query is kept byte for byte (RFC 6749, section 3.1.2).
    whole = f"{parts.query}&{query}" if parts.query else query
    return parts._replace(query=whole).geturl()


def _problem(url: str, *, allow_http: bool) -> str | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "must be an http or https URL"
    rules = {
        f"must be at most {MAX_URL_LENGTH} characters": len(url) <= MAX_URL_LENGTH,
        "must be an http or https URL": bool(
            parts.scheme in {"http", "https"} and host and port != 0
        ),
        # Browsers read a backslash as a slash, and so another host than we do.
        "must not hold spaces, backslashes or control characters": (
            url.isprintable() and " " not in url and "\\" not in url
        ),
        "must name its host in letters, digits and hyphens": _is_plain_host(host or ""),
        "must not hold a user name or password": "@" not in parts.netloc,
        # Browsers don't send fragments, and RFC 6749 (section 3.1.2) forbids them here.
        "must not have a fragment": "#" not in url,
        "must not have parameters named code or state": not _has_own_parameters(parts.query),
        "must be https (http is for localhost)": (
            parts.scheme == "https" or allow_http or _is_localhost(host or "")
        ),
    }
    return next((problem for problem, kept in rules.items() if not kept), None)


def _has_own_parameters(query: str) -> bool:
    return any(name in OWN_PARAMETERS for name in parse_qs(query, keep_blank_values=True))


def _is_plain_host(host: str) -> bool:
    """A name of plain labels or an address: what every parser reads alike."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(_HOST.fullmatch(host))
    return True


def _is_localhost(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
