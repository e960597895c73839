"""In what a redirect URI differs from those that are registered, for whoever sets a client up.

`redirects.matches` decides; this explains. A URI that was copied from an address bar is understood in its
encoded form, and inside the address of a whole request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from msgsvc_oidc.protocol.redirects import matches

Kind = Literal[
    "scheme",
    "user_info",
    "host",
    "host_case",
    "loopback",
    "port",
    "path",
    "path_case",
    "trailing_slash",
    "encoding",
    "query",
    "fragment",
    "characters",
]

#: Names of this machine that browsers treat as different hosts.
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A part that differs: as registered, and as sent; empty for what one lacks."""

    kind: Kind
    registered: str
    sent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the URI was read as, the registered one that it matches or is closest to, and in what they
    differ."""

    sent: str
    #: None if no URI is registered.
    nearest: str | None
    matches: bool
    differences: tuple[Difference, ...] = ()


def compare(registered: Sequence[str], text: str, *, any_port: bool) -> Comparison:
    """Compares what somebody pasted with the registered URIs; `any_port` as for `matches`."""
    sent = pasted_uri(text)
    for uri in registered:
        if matches(uri, sent, any_port=any_port):
            return Comparison(sent=sent, nearest=uri, matches=True)
    nearest = min(registered, key=lambda uri: _distance(uri, sent), default=None)
    differing = () if nearest is None else differences(nearest, sent)
    return Comparison(sent=sent, nearest=nearest, matches=False, differences=differing)


def pasted_uri(text: str) -> str:
    """The redirect URI in what was pasted: itself, percent-encoded, or in the address of a request."""
    uri = text.strip()
    inside = parse_qs(uri.partition("?")[2]).get("redirect_uri")
    if inside:
        return inside[0]
    return unquote(uri) if "://" not in uri and "%3a" in uri.lower() else uri


def differences(registered: str, sent: str) -> tuple[Difference, ...]:
    """In what two URIs differ, from left to right; empty if they are the same."""
    try:
        mine, other = urlsplit(registered), urlsplit(sent)
        ports = _port(mine), _port(other)
    except ValueError:
        # Nothing that has parts.
        return (Difference("host", registered, sent),)
    found = [
        _difference("scheme", _scheme(registered), _scheme(sent)),
        _difference("user_info", _user_info(mine), _user_info(other)),
        _host(_host_text(mine), _host_text(other)),
        _difference("port", *ports),
        _path(mine.path, other.path),
        _difference("query", mine.query, other.query),
        _difference("fragment", mine.fragment, other.fragment),
    ]
    named = tuple(each for each in found if each is not None)
    # What parts do not show: characters that can't be seen, and a `?`, `#` or `:` with nothing behind it.
    return named or (() if registered == sent else (Difference("characters", registered, sent),))


def _distance(uri: str, sent: str) -> tuple[int, float]:
    """Fewer differences are closer, and of as many, more letters in common."""
    return len(differences(uri, sent)), -SequenceMatcher(None, uri, sent).ratio()


def _difference(kind: Kind, registered: str, sent: str) -> Difference | None:
    return None if registered == sent else Difference(kind, registered, sent)


def _host(registered: str, sent: str) -> Difference | None:
    if registered == sent:
        return None
    if registered.lower() == sent.lower():
        return Difference("host_case", registered, sent)
    both_here = {registered.lower().strip("[]"), sent.lower().strip("[]")} <= _THIS_MACHINE
    return Difference("loopback" if both_here else "host", registered, sent)


def _path(registered: str, sent: str) -> Difference | None:
    if registered == sent:
        return None
    kinds: dict[Kind, bool] = {
        "trailing_slash": registered.rstrip("/") == sent.rstrip("/"),
        "path_case": registered.lower() == sent.lower(),
        "encoding": unquote(registered) == unquote(sent),
    }
    kind: Kind = next((kind for kind, applies in kinds.items() if applies), "path")
    return Difference(kind, registered, sent)


def _scheme(uri: str) -> str:
    """As written: `urlsplit` changes its case."""
    return uri.partition(":")[0] if ":" in uri else ""


def _user_info(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[0]


def _host_text(parts: SplitResult) -> str:
    """As written, without the port."""
    netloc = parts.netloc.rpartition("@")[2]
    if netloc.startswith("["):
        return netloc.partition("]")[0] + "]"
    return netloc.partition(":")[0]


def _port(parts: SplitResult) -> str:
    """Raises ValueError for what is no port."""
    return "" if parts.port is None else str(parts.port)
