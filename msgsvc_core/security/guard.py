"""The outbound guard: tenants name the URLs we call, and must not reach our own network by them."""

import asyncio
import errno
import re
import socket
from collections.abc import Sequence
from ipaddress import ip_network
from ssl import SSLContext

from aiohttp import AddrInfoType, ClientConnectorError, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from msgsvc_core.security.addresses import Address, is_public, parse_address, without_wrapping

#: Seconds `check_target` waits for DNS, as a person waits for its answer.
RESOLVE_TIMEOUT_S = 5.0

#: Characters in a host name (RFC 1035, section 2.3.4, less the root's dot).
MAX_HOST_LENGTH = 253

#: Names that resolvers and clouds keep for machines nearby (RFC 6761, RFC 6762, ICANN 2024).
LOCAL_NAMES = ("localhost", "local", "internal")

# Parsers of URLs disagree about these: some cut there, some drop them, and a checker that differs
# from the connecting client has checked another host.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")

_AUTHORITY_END = re.compile(r"[/?#]")

_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")

# A host whose last label is a number is an IPv4 address to inet_aton (URL Standard, "ends in a
# number"), which also takes `127.1`, `2130706433`, `0x7f.1` and the octal `0177.0.0.1`.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class ForbiddenTarget(OSError):
    """A URL or address we don't connect to; `reason` is for the person who set it.

    An OSError, so that aiohttp takes it for a failed connection.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EACCES, reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class OutboundGuard:
    """Says which URLs and addresses may be called.

    `allow_cidrs` are ranges that the operator opens although they are not public, such as
    `127.0.0.0/8` in development; `allow_http` opens plain http. ValueError for a bad CIDR.
    """

    def __init__(self, allow_cidrs: Sequence[str] = (), allow_http: bool = False) -> None:
        self._opened = tuple(ip_network(cidr) for cidr in allow_cidrs)
        self._schemes = ("https", "http") if allow_http else ("https",)

    def is_allowed(self, ip: str | Address) -> bool:
        """Whether an address may be connected to; false for a text that is no plain address."""
        address = parse_address(str(ip))
        if address is None:
            return False
        spellings = (address, without_wrapping(address))
        opened = any(spelling in network for spelling in spellings for network in self._opened)
        return opened or is_public(address)

    def check_url(self, url: str) -> None:
        """Raises `ForbiddenTarget` for what the URL alone shows to be wrong; asks no DNS."""
        if _AMBIGUOUS.search(url):
            raise ForbiddenTarget("the URL contains a space, control character or backslash")
        try:
            # The parser of the client that will connect, so that both see the same host.
            parsed = URL(url)
        except ValueError as error:
            raise ForbiddenTarget("the URL is malformed") from error
        if parsed.scheme not in self._schemes:
            raise ForbiddenTarget(f"the URL must begin with {' or '.join(self._schemes)}")
        if "@" in _AUTHORITY_END.split(url.partition("://")[2], maxsplit=1)[0]:
            raise ForbiddenTarget("the URL must not hold a user name or password")
        if parsed.port == 0:
            raise ForbiddenTarget("port 0 can't be connected to")
        self._check_host(parsed.raw_host or "")

    async def check_target(self, url: str) -> None:
        """Like `check_url`, and resolves the host and checks every address.

        For the moment somebody enters a URL. A call made later goes through `connector`, which
        looks again: names change their addresses.
        """
        self.check_url(url)
        host = URL(url).raw_host or ""
        if parse_address(host):
            return
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                await self.resolver().resolve(host, family=socket.AF_UNSPEC)
        except ForbiddenTarget:
            raise
        except OSError as error:
            raise ForbiddenTarget(f"the host {host} can't be resolved") from error

    def resolver(self) -> AbstractResolver:
        """A resolver that fails for a name with any forbidden address."""
        return GuardedResolver(self)

    def connector(
        self, *, limit: int = 100, limit_per_host: int = 0, ssl: SSLContext | bool = True
    ) -> TCPConnector:
        """A connector for `aiohttp.ClientSession` that reaches allowed addresses alone.

        Arguments as for `aiohttp.TCPConnector`. It must be made inside a running loop.
        """
        return GuardedConnector(self, limit=limit, limit_per_host=limit_per_host, ssl=ssl)

    def _check_host(self, host: str) -> None:
        if not host:
            raise ForbiddenTarget("the URL has no host")
        address = parse_address(host)
        if address is not None:
            if not self.is_allowed(address):
                raise ForbiddenTarget(f"the address {host} is not public")
            return
        if len(host.rstrip(".")) > MAX_HOST_LENGTH or not _NAME.fullmatch(host):
            raise ForbiddenTarget("the host is neither a name nor a plain IP address")
        last_label = host.rstrip(".").rpartition(".")[2]
        if _NUMBER.fullmatch(last_label):
            raise ForbiddenTarget("an IPv4 address must be written as four decimal numbers")
        # With ranges opened, the name may well lead into one: then its addresses decide.
        if last_label in LOCAL_NAMES and not self._opened:
            raise ForbiddenTarget(f"the host {host} is a local name")


class GuardedResolver(AbstractResolver):
    """Resolves with the system's resolver, and hands on only what the guard allows.

    aiohttp connects to the addresses it gets here, without asking DNS again; so a name that
    changes its address between check and connection (DNS rebinding) gains nothing.
    """

    def __init__(self, guard: OutboundGuard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Every address of `host`. Raises `ForbiddenTarget` if one of them is forbidden."""
        infos = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
        )
        addresses = [(found_family, str(address[0])) for found_family, *_, address in infos]
        # One bad address refuses them all: a client that moves on to the next would reach it.
        if not all(self._guard.is_allowed(address) for _, address in addresses):
            # The address stays untold: tenants could ask us about names of our own network.
            raise ForbiddenTarget(f"the host {host} has an address that is not public")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=found_family, proto=0, flags=0
            )
            for found_family, address in addresses
        ]

    async def close(self) -> None:
        """Nothing is held open."""


class GuardedConnector(TCPConnector):
    """Looks at the URL of every request, at every resolved name, and at every socket's address.

    The resolver alone does not do: aiohttp never asks it about hosts that are IP addresses.
    """

    def __init__(
        self, guard: OutboundGuard, *, limit: int, limit_per_host: int, ssl: SSLContext | bool
    ) -> None:
        super().__init__(
            resolver=guard.resolver(),
            socket_factory=self._open_socket,
            limit=limit,
            limit_per_host=limit_per_host,
            ssl=ssl,
        )
        self._guard = guard

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout
    ) -> Connection:
        """Checks first; a redirect passes here too."""
        try:
            # A proxy would resolve the name and connect, where no check of ours reaches.
            if req.proxy:
                raise ForbiddenTarget("requests to tenants' URLs don't go through a proxy")
            self._guard.check_url(str(req.url))
        except ForbiddenTarget as error:
            raise ClientConnectorError(req.connection_key, error) from error
        return await super().connect(req, traces, timeout)

    def _open_socket(self, info: AddrInfoType) -> socket.socket:
        # The last look, at the very address to be connected to, whatever path led to it.
        family, kind, proto, _, address = info
        if not self._guard.is_allowed(str(address[0])):
            raise ForbiddenTarget("the address is not public")
        return socket.socket(family, kind, proto)
