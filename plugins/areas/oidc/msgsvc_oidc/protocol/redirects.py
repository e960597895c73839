"""Redirect URIs: which can be registered, and when a request's equals one (RFC 9700, section 2.1)."""

import ipaddress
import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from msgsvc_core.security.http_urls import MAX_URL_LENGTH

#: Parameters that the provider adds: a redirect URI can't have its own.
OWN_PARAMETERS = ("code", "state", "iss", "error", "error_description")

#: Letters of ASCII: a name in another script is registered in its `xn--` form, as browsers send it.
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")

#: A scheme of an app: a domain in reverse, so that no other app takes it by accident (RFC 8252, section 7.1).
_APP_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+")

_LOOPBACK = ("127.0.0.1", "::1")

#: A URI on a loopback address: what stands before and after its port, which an app chooses when it starts
#: (RFC 8252, section 7.3).
_ANY_PORT = re.compile(
    r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[1-9][0-9]{0,4})?((?:[/?].*)?)", re.DOTALL
)

#: What browsers send percent-encoded, and a percent sign that begins no encoding (RFC 3986, sections 2.1
#: and 3).
_NOT_IN_URI = re.compile(r'["<>^`{|}]|%(?![0-9A-Fa-f]{2})')

#: Encoded control characters: one that is decoded on the way ends a line of a header, or a string.
_ENCODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")


def redirect_problem(uri: str, *, public: bool, allow_http: bool = False) -> str | None:
    """The rule that a redirect URI breaks, as text for the person who registers it; None if it is fine.

    `public` clients are apps: they may use loopback addresses over http and schemes of their own.
    `allow_http` allows http for other hosts as well, for tests and closed networks.
    """
    problem = _text_problem(uri)
    if problem is not None:
        return problem
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "must be an absolute URI"
    if uri.partition(":")[0] != parts.scheme or parts.netloc != parts.netloc.lower():
        return "must be in lower case up to its path"
    if parts.scheme not in {"http", "https"}:
        return _app_problem(parts.scheme, public=public) or _path_problem(parts.path, parts.query)
    return _web_problem(parts.scheme, parts.netloc, host, port, allow_http) or _path_problem(
        parts.path, parts.query
    )


def matches(registered: str, requested: str, *, any_port: bool) -> bool:
    """Whether they are equal, character by character (RFC 3986, section 6.2.1).

    With `any_port`, which is for apps, URIs on the same loopback address may differ in their port (RFC 8252,
    section 7.3): a site that listens there has one port, and another process could listen on the next.
    """
    if registered == requested or not any_port:
        return registered == requested
    mine, other = _ANY_PORT.fullmatch(registered), _ANY_PORT.fullmatch(requested)
    return mine is not None and other is not None and mine.groups() == other.groups()


def add_parameters(uri: str, parameters: dict[str, str]) -> str:
    """The URI with parameters added; what it has is kept byte for byte (RFC 6749, section 3.1.2)."""
    _, has_query, query = uri.partition("?")
    separator = "&" if query and not query.endswith("&") else ""
    return f"{uri}{separator if has_query else '?'}{urlencode(parameters)}"


def _text_problem(uri: str) -> str | None:
    rules = {
        "must be at most 2048 characters": len(uri) <= MAX_URL_LENGTH,
        "must not hold spaces, backslashes, control characters or letters outside ASCII": (
            uri.isascii() and uri.isprintable() and " " not in uri and "\\" not in uri
        ),
        "must not hold a wildcard: each redirect URI is registered by itself": "*" not in uri,
        "must not have a fragment": "#" not in uri,
        "must have its special characters percent-encoded": _NOT_IN_URI.search(uri) is None,
        "must not hold encoded control characters": _ENCODED_CONTROL.search(uri) is None,
    }
    return next((problem for problem, kept in rules.items() if not kept), None)


def _app_problem(scheme: str, *, public: bool) -> str | None:
    if not public:
        return "must be an https URL"
    if not _APP_SCHEME.fullmatch(scheme):
        return "must be an https URL, or have a scheme like com.example.app"
    return None


def _web_problem(
    scheme: str, netloc: str, host: str, port: int | None, allow_http: bool
) -> str | None:
    if "@" in netloc:
        return "must not hold a user name or password"
    if not host or port == 0 or not _is_host(host) or netloc.endswith(":"):
        return "must name its host in letters, digits and hyphens"
    if scheme == "http" and not (allow_http or _is_local(host)):
        return "must be https (http is for localhost)"
    return None


def _path_problem(path: str, query: str) -> str | None:
    # Browsers take the encoded dots for dots as well.
    if any(unquote(part) in {".", ".."} for part in path.split("/")):
        return "must not hold the path segments . and .."
    if any(name in OWN_PARAMETERS for name, _ in parse_qsl(query, keep_blank_values=True)):
        return "must not have parameters named code, state, iss, error or error_description"
    return None


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(_HOST.fullmatch(host))
    return True


def _is_local(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost") or host in _LOOPBACK
