"""Opens connections: host names, addresses, proxies, TLS, and the outbound guard's check of each address."""

import asyncio
import base64
import socket
import ssl
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

import aiohappyeyeballs
import structlog
from yarl import URL

from msgsvc_core.http_client.connection import Connection
from msgsvc_core.http_client.errors import ConnectionLost, NameNotResolved, NotConnected
from msgsvc_core.http_client.messages import Origin, header_lines
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security.addresses import parse_address
from msgsvc_core.security.dns import HostResolver
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

#: Seconds for which the addresses of a name are remembered; a name that moves is found at its new address
#: that much later.
REMEMBERED_S = 10.0

#: Names of one event loop that are remembered at most; beyond, the oldest are forgotten.
REMEMBERED_NAMES = 10_000

#: Seconds after which the next address of a name is tried beside one that has not answered (RFC 8305,
#: section 8).
NEXT_ADDRESS_S = 0.25

#: Bytes of a proxy's response to CONNECT.
MAX_TUNNEL_HEAD_BYTES = 16 * 1024

#: Family, kind, protocol, canonical name and address, as `socket.getaddrinfo` has them.
AddressInfo = tuple[Any, ...]

log = structlog.get_logger(__name__)


@lru_cache(maxsize=100)
def trust(ca_file: str | None = None) -> ssl.SSLContext:
    """TLS that trusts the system's authorities, and those in the PEM file `ca_file` beside them.

    Kept: reading the system's takes tens of milliseconds and a megabyte.
    """
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


class Names:
    """Addresses of host names, remembered for `REMEMBERED_S`; concurrent lookups of one name are one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, Sequence[AddressInfo]]] = {}
        self._under_way: dict[tuple[str, int], asyncio.Task[Sequence[AddressInfo]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Raises `OSError`."""
        loop = asyncio.get_running_loop()
        key = host, port
        known = self._known.get(key)
        if known is not None and loop.time() < known[0]:
            return known[1]
        lookup = self._under_way.get(key)
        if lookup is None:
            lookup = self._under_way[key] = loop.create_task(self._look_up(host, port))
            lookup.add_done_callback(lambda ended: self._forget(key, ended))
        found = await asyncio.shield(lookup)
        self._known.pop(key, None)
        if len(self._known) >= REMEMBERED_NAMES:
            del self._known[next(iter(self._known))]
        self._known[key] = loop.time() + REMEMBERED_S, found
        return found

    def _forget(self, key: tuple[str, int], ended: "asyncio.Task[Sequence[AddressInfo]]") -> None:
        del self._under_way[key]
        if not ended.cancelled():
            # Whoever waited may have been cancelled, and nobody retrieves it.
            ended.exception()

    async def _look_up(self, host: str, port: int) -> Sequence[AddressInfo]:
        return await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )


class GuardedNames(Names):
    """Addresses of names that tenants set: resolved apart from all others (see `security.dns`), and only if
    the guard allows every one of them.

    The connection is made to the addresses returned, so a name that changes its address between check and
    connection (DNS rebinding) gains nothing.
    """

    def __init__(self, guard: OutboundGuard) -> None:
        super().__init__()
        self._guard = guard
        self._resolver = HostResolver()

    async def _look_up(self, host: str, port: int) -> Sequence[AddressInfo]:
        found = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
        # One forbidden address rejects all: a client that tries the next address would reach it.
        if not all(self._guard.is_allowed(str(address[0])) for *_, address in found):
            # For the operator only; otherwise tenants could probe names of our own network.
            log.info("host_not_public", host=host)
            raise NoPublicHost("the host can't be resolved to public addresses")
        # Callers for other ports share the lookup.
        return [(*info, (address[0], port, *address[2:])) for *info, address in found]

    async def close(self) -> None:
        """Ends pending lookups; who waits for one gets an error."""
        await self._resolver.close()
        if self._under_way:
            await asyncio.wait(self._under_way.values())


#: Of each event loop: a thousand bots of one platform ask for the same name.
_NAMES: "WeakKeyDictionary[asyncio.AbstractEventLoop, Names]" = WeakKeyDictionary()


@value_object
class Proxy:
    """An HTTP proxy: requests to http servers name the whole URL (absolute form), others pass through a
    tunnel (CONNECT)."""

    origin: Origin
    #: `Proxy-Authorization`.
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_url(cls, url: str) -> "Proxy":
        """`http://user:password@host:port`, or https. Raises ValueError, without the URL."""
        parsed = URL(url)
        if parsed.scheme not in {"http", "https"} or not parsed.raw_host or not parsed.port:
            raise ValueError("not the URL of an HTTP proxy")
        headers: tuple[tuple[str, str], ...] = ()
        if parsed.user is not None:
            login = f"{parsed.user}:{parsed.password or ''}".encode()
            headers = (("Proxy-Authorization", f"Basic {base64.b64encode(login).decode()}"),)
        return cls((parsed.scheme, parsed.raw_host, parsed.port), headers)


class Connector:
    """Opens connections, through `proxy` if one is set.

    With a `guard`, only to addresses that it allows; then there can be no proxy, which would resolve names
    and connect where we can't check.
    """

    def __init__(
        self,
        *,
        ca_file: str | None = None,
        proxy: Proxy | None = None,
        guard: OutboundGuard | None = None,
    ) -> None:
        if guard is not None and proxy is not None:
            raise ValueError("what a proxy connects to can't be checked")
        self._ca_file = ca_file
        #: The one that connections go through.
        self.proxy = proxy
        self._guard = guard
        self._guarded_names = GuardedNames(guard) if guard is not None else None

    async def connect(self, origin: Origin) -> Connection:
        """Raises `NotConnected`."""
        scheme, host, port = self.proxy.origin if self.proxy is not None else origin
        try:
            infos = await self._addresses(host, port)
        except ForbiddenTarget as error:
            raise NotConnected(host, port, error) from None
        except (OSError, UnicodeError) as error:
            cause = error if isinstance(error, OSError) else None
            raise NameNotResolved(host, port, cause) from None
        try:
            return await self._open(origin, scheme, host, infos)
        except (OSError, ConnectionLost) as error:
            cause = error if isinstance(error, OSError) else None
            raise NotConnected(host, port, cause) from None

    async def close(self) -> None:
        if self._guarded_names is not None:
            await self._guarded_names.close()

    async def _addresses(self, host: str, port: int) -> Sequence[AddressInfo]:
        address = parse_address(host)
        if address is None or "%" in host:
            return await self._names().resolve(host, port)
        # The system's resolver would take a thread to say the same.
        if address.version == 6:
            return [
                (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))
            ]
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]

    def _names(self) -> Names:
        if self._guarded_names is not None:
            return self._guarded_names
        loop = asyncio.get_running_loop()
        names = _NAMES.get(loop)
        if names is None:
            names = _NAMES[loop] = Names()
        return names

    async def _open(
        self, origin: Origin, scheme: str, host: str, infos: Sequence[AddressInfo]
    ) -> Connection:
        opened = await aiohappyeyeballs.start_connection(
            list(infos),
            happy_eyeballs_delay=NEXT_ADDRESS_S,
            socket_factory=self._make_socket,
        )
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            needs_tunnel = self.proxy is not None and origin[0] == "https"
            loop = asyncio.get_running_loop()
            factory = _Tunnel if needs_tunnel else Connection
            tls = trust(self._ca_file) if scheme == "https" else None
            transport, protocol = await loop.create_connection(
                factory, sock=opened, ssl=tls, server_hostname=_tls_name(host) if tls else None
            )
        except BaseException:
            opened.close()
            raise
        if isinstance(protocol, Connection):
            return protocol
        assert isinstance(protocol, _Tunnel)
        return await self._through(protocol, transport, origin)

    async def _through(
        self, tunnel: "_Tunnel", transport: asyncio.Transport, origin: Origin
    ) -> Connection:
        """TLS to the server, in a tunnel through the proxy."""
        assert self.proxy is not None
        _scheme, host, port = origin
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            headers = header_lines([("Host", shown), *self.proxy.headers])
            await tunnel.ask(f"CONNECT {shown} HTTP/1.1\r\n".encode() + headers + b"\r\n")
            connection = Connection()
            secured = await asyncio.get_running_loop().start_tls(
                transport, connection, trust(self._ca_file), server_hostname=_tls_name(host)
            )
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise ConnectionLost
        connection.connection_made(secured)
        return connection

    def _make_socket(self, info: AddressInfo) -> socket.socket:
        # The last check, of the address to connect to, whatever path led to it.
        family, kind, protocol, _, address = info
        if self._guard is not None and not self._guard.is_allowed(str(address[0])):
            raise ForbiddenTarget("the address is not public")
        return socket.socket(family, kind, protocol)


def _tls_name(host: str) -> str:
    """The host as certificates and SNI have it: without the root's dot (RFC 6066, section 3)."""
    return host.removesuffix(".")


class _Tunnel(asyncio.Protocol):
    """A connection to a proxy that has yet to agree to CONNECT."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = b""

    async def ask(self, request: bytes) -> None:
        """Raises `OSError` if the proxy refuses."""
        assert self._transport is not None
        self._transport.write(request)
        await self._agreed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, but not the class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, beyond = self._received.partition(b"\r\n\r\n")
        if not end and len(self._received) <= MAX_TUNNEL_HEAD_BYTES:
            return
        words = head.split(b"\r\n", 1)[0].split(b" ", 2)
        # A server waits for TLS to begin, so nothing can follow.
        if end and not beyond and words[0].startswith(b"HTTP/1.") and words[1:2] == [b"200"]:
            self._settle(None)
        else:
            self._settle(ConnectionRefusedError("the proxy refuses"))

    def connection_lost(self, error: Exception | None) -> None:
        self._settle(ConnectionResetError("the proxy has closed the connection"))

    def _settle(self, error: OSError | None) -> None:
        if self._agreed.done():
            return
        if error is None:
            self._agreed.set_result(None)
        else:
            self._agreed.set_exception(error)
            # The caller may have been cancelled.
            self._agreed.exception()
