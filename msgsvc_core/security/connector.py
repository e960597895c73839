"""The outbound guard for aiohttp: checks the resolution of names, and every socket that is opened.

aiohttp takes 7 MiB of an idle process: import this module to make calls, and not to check a URL.
"""

import socket
from functools import lru_cache
from ssl import SSLContext

import structlog
from aiohttp import AddrInfoType, ClientConnectorError, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from msgsvc_core.security.dns import HostResolver
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

#: Seconds for which aiohttp caches the addresses of a name. They are checked again before each connection; a
#: name that moves is found at its new address that much later.
REMEMBERED_S = 10

#: Number of URLs whose check is cached: one batch of calls repeats the same few.
KNOWN_URLS = 1000

log = structlog.get_logger(__name__)


class GuardedResolver(AbstractResolver):
    """Resolves with the system's resolver, outside the loop's threads (see `dns`), and returns only addresses
    that the guard allows.

    aiohttp connects to the returned addresses without asking DNS again, so a name that changes its address
    between check and connection (DNS rebinding) has no effect.
    """

    def __init__(self, guard: OutboundGuard) -> None:
        self._guard = guard
        self._resolver = HostResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Every address of `host`. Raises `ForbiddenTarget` if one of them is forbidden."""
        infos = await self._resolver.resolve(host, port, family)
        addresses = [(found_family, str(address[0])) for found_family, *_, address in infos]
        # One forbidden address rejects all: a client that tries the next address would reach it.
        if not all(self._guard.is_allowed(address) for _, address in addresses):
            # For the operator only; otherwise tenants could probe names of our own network.
            log.info("host_not_public", host=host)
            raise NoPublicHost("the host can't be resolved to public addresses")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=found_family, proto=0, flags=0
            )
            for found_family, address in addresses
        ]

    async def close(self) -> None:
        """Cancels pending lookups."""
        await self._resolver.close()


class GuardedConnector(TCPConnector):
    """For `aiohttp.ClientSession`: checks the URL of every request, every resolved name, and every socket's
    address, and connects only to allowed ones.

    Arguments as for `aiohttp.TCPConnector`. It must be created inside a running loop. The resolver alone is
    not enough: aiohttp never calls it for hosts that are IP addresses.
    """

    def __init__(
        self,
        guard: OutboundGuard,
        *,
        limit: int = 100,
        limit_per_host: int = 0,
        ssl: SSLContext | bool = True,
    ) -> None:
        self._names = GuardedResolver(guard)
        super().__init__(
            resolver=self._names,
            ttl_dns_cache=REMEMBERED_S,
            socket_factory=self._open_socket,
            limit=limit,
            limit_per_host=limit_per_host,
            ssl=ssl,
        )
        self._guard = guard
        # Checked for every request, even on an open connection; depends on the URL alone.
        self._check_url = lru_cache(maxsize=KNOWN_URLS)(guard.check_url)

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout
    ) -> Connection:
        """Checks first; a redirect passes here too."""
        try:
            # A proxy would resolve the name and connect, which we can't check.
            if req.proxy:
                raise ForbiddenTarget("requests to tenants' URLs don't go through a proxy")
            self._check_url(str(req.url))
        except ForbiddenTarget as error:
            raise ClientConnectorError(req.connection_key, error) from error
        return await super().connect(req, traces, timeout)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Cancels the lookups too: aiohttp does not close a resolver that was passed to it."""
        await super().close(abort_ssl=abort_ssl)
        await self._names.close()

    def _open_socket(self, info: AddrInfoType) -> socket.socket:
        # The final check, of the address to connect to, whatever path led to it.
        family, kind, proto, _, address = info
        if not self._guard.is_allowed(str(address[0])):
            raise ForbiddenTarget("the address is not public")
        return socket.socket(family, kind, proto)
