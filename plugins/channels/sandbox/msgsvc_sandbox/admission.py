"""Access rules. The messenger has no passwords: anyone who can reach it can act as any person."""

import ipaddress
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from msgsvc_core.http.proxies import PROXY_HEADERS
from msgsvc_core.kernel.errors import Forbidden

Who = Literal["local", "everyone"]

#: Methods that change nothing, which other sites may therefore link to.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Admission:
    """Access rules of one messenger: `sandbox.pages`, and protection from other sites.

    A page of another site runs in an allowed user's browser, so checking the address is not enough.
    """

    def __init__(self, who: Who, base_url: str) -> None:
        self._who = who
        self._base = urlsplit(base_url)

    def check(self, method: str, client_ip: str, headers: Mapping[str, str]) -> None:
        """Raises `Forbidden` for a caller without access.

        `headers` is read by lower-case names.
        """
        if self._who == "local":
            _check_local(client_ip, headers)
        self._check_host(headers.get("host", ""))
        if method not in SAFE_METHODS:
            self._check_same_site(headers)

    def _check_host(self, host: str) -> None:
        """Another site whose name was made to lead here (DNS rebinding) still says its own name."""
        name = _name(host)
        if name not in {"localhost", self._base.hostname} and not _is_address(name):
            raise Forbidden(
                "the sandbox messenger is known as localhost, by IP address, and by the name in"
                " `base_url`"
            )

    def _check_same_site(self, headers: Mapping[str, str]) -> None:
        """What changes something comes from our own pages, or from a program, which sends neither."""
        origin = headers.get("origin")
        ours = {headers.get("host", "").lower(), self._base.netloc.lower()}
        if (origin is not None and _netloc(origin) not in ours) or headers.get(
            "sec-fetch-site"
        ) in {"cross-site", "same-site"}:
            raise Forbidden("another site can't act in the sandbox messenger")


def _check_local(client_ip: str, headers: Mapping[str, str]) -> None:
    if any(name in headers for name in PROXY_HEADERS) or not _is_local(client_ip):
        raise Forbidden(
            "the sandbox messenger serves this machine and private networks, without a proxy"
            " (setting `sandbox.pages`)"
        )


def _is_local(client_ip: str) -> bool:
    """Whether the caller is on this machine or a private network.

    One without an IP address came by no network: a test in this process, or a local socket.
    """
    try:
        address = ipaddress.ip_address(client_ip)
    except ValueError:
        return True
    return address.is_loopback or address.is_private or address.is_link_local


def _netloc(origin: str) -> str:
    """Host and port of an origin; empty for the `null` of a page without one."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(host: str) -> str:
    """The name or address in a Host header; empty if it can't be one."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
