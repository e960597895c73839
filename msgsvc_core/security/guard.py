"""The outbound guard against SSRF: tenants choose URLs that we call, and must not reach our own network."""

import errno
import re
from collections.abc import Sequence
from ipaddress import ip_network

from yarl import URL

from msgsvc_core.kernel.errors import Finding, Refusal, calling_package
from msgsvc_core.security.addresses import Address, is_public, parse_address, without_wrapping

#: Maximum characters of a host name (RFC 1035, section 2.3.4, without the root's dot).
MAX_HOST_LENGTH = 253

#: Names reserved by resolvers and clouds for local machines (RFC 6761, RFC 6762, ICANN 2024).
LOCAL_NAMES = ("localhost", "local", "internal")

# URL parsers differ in these: some cut there, some drop them, and a check that differs from the connecting
# client has checked another host.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")

_AUTHORITY_END = re.compile(r"[/?#]")

_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")

# A host whose last label is a number is an IPv4 address to inet_aton (URL Standard, "ends in a
# number"), which also takes `127.1`, `2130706433`, `0x7f.1` and the octal `0177.0.0.1`.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class ForbiddenTarget(Refusal, OSError):
    """A URL or address that must not be connected to; the text is for the person who set it.

    `allowed_by` is the argument of `OutboundGuard` by which an operator can allow it, None if none does. An
    OSError, so that an attempt to connect treats it as a failed connection.
    """

    def __init__(self, msgid: str, allowed_by: str | None = None, **params: object) -> None:
        super().__init__((Finding(msgid, params, package=calling_package()),))
        self.errno = errno.EACCES
        self.allowed_by = allowed_by

    @property
    def reason(self) -> str:
        return str(self)


class NoPublicHost(ForbiddenTarget):
    """The host name resolves to no public address. Callers report it to tenants exactly like an unknown
    name; otherwise tenants could probe the names of our internal network."""


class OutboundGuard:
    """Decides which URLs and addresses may be called.

    `allow_cidrs` are ranges that the operator allows although they are not public, such as `127.0.0.0/8` in
    development; `allow_http` allows plain http. ValueError for a bad CIDR. Calls are made with
    `http_client.Connector(guard=...)`, which checks every address that it connects to.
    """

    def __init__(self, allow_cidrs: Sequence[str] = (), allow_http: bool = False) -> None:
        self._opened = tuple(ip_network(cidr) for cidr in allow_cidrs)
        self._schemes = ("https", "http") if allow_http else ("https",)

    def is_allowed(self, ip: str | Address) -> bool:
        """Whether an address may be connected to; false for a text that is not an address."""
        address = parse_address(str(ip))
        if address is None:
            return False
        spellings = (address, without_wrapping(address))
        opened = any(spelling in network for spelling in spellings for network in self._opened)
        return opened or is_public(address)

    def check_url(self, url: str) -> None:
        """Raises `ForbiddenTarget` for a URL that is forbidden without a DNS lookup.

        Used when a URL is entered and before each call. DNS records change, so addresses are checked when
        they are connected to.
        """
        if _AMBIGUOUS.search(url):
            raise ForbiddenTarget("the URL contains a space, control character or backslash")
        try:
            # The parser of the client that will connect, so that both see the same host.
            parsed = URL(url)
        except ValueError as error:
            raise ForbiddenTarget("the URL is malformed") from error
        if parsed.scheme not in self._schemes:
            raise ForbiddenTarget(
                "the URL must begin with {schemes}",
                "allow_http" if parsed.scheme == "http" else None,
                schemes=" or ".join(self._schemes),
            )
        if "@" in _AUTHORITY_END.split(url.partition("://")[2], maxsplit=1)[0]:
            raise ForbiddenTarget("the URL must not hold a user name or password")
        if parsed.port == 0:
            raise ForbiddenTarget("port 0 can't be connected to")
        self._check_host(parsed.raw_host or "")

    def _check_host(self, host: str) -> None:
        if not host:
            raise ForbiddenTarget("the URL has no host")
        address = parse_address(host)
        if address is not None:
            if not self.is_allowed(address):
                raise ForbiddenTarget(
                    "the address {address} is not public", "allow_cidrs", address=host
                )
            return
        if len(host.rstrip(".")) > MAX_HOST_LENGTH or not _NAME.fullmatch(host):
            raise ForbiddenTarget("the host is neither a name nor a plain IP address")
        last_label = host.rstrip(".").rpartition(".")[2]
        if _NUMBER.fullmatch(last_label):
            raise ForbiddenTarget("an IPv4 address must be written as four decimal numbers")
        # With allowed ranges, the name may resolve to one: then its addresses decide.
        if last_label in LOCAL_NAMES and not self._opened:
            raise ForbiddenTarget("the host {host} is a local name", "allow_cidrs", host=host)
