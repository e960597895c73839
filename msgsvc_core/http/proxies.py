"""The client address behind trusted proxies; forwarding headers of other peers are ignored."""

from collections.abc import Iterable
from ipaddress import IPv4Address

from starlette.types import ASGIApp, Receive, Scope, Send

from msgsvc_core.security.addresses import Address
from msgsvc_core.security.networks import Networks, peer_address

#: Headers added by proxies, which show that there is an untrusted one: the real client is then unknown.
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

#: Request state key: whether the trusted proxies reported the client address.
FOUND_BY_PROXY = "client_found_by_proxy"

#: The address of peers on a unix socket.
THIS_MACHINE = IPv4Address("127.0.0.1")

Headers = Iterable[tuple[bytes, bytes]]


class TrustedProxies:
    """Pure ASGI middleware that sets `client` and `scheme` as reported by the trusted proxies.

    Forwarding headers on connections from other peers are ignored. With `on_unix`, a peer without an address
    is trusted, as this machine: the permissions of the socket's file let it in.
    """

    def __init__(self, app: ASGIApp, proxies: Networks, *, on_unix: bool = False) -> None:
        self._app = app
        self._proxies = proxies
        self._on_unix = on_unix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"}:
            peer = self._trusted_peer(scope.get("client"))
            if peer is not None:
                scope = self._seen_by_proxies(scope, peer)
        await self._app(scope, receive, send)

    def _trusted_peer(self, client: tuple[str, int] | None) -> Address | None:
        if client is None:
            return THIS_MACHINE if self._on_unix else None
        peer = peer_address(client[0])
        return peer if peer is not None and peer in self._proxies else None

    def _seen_by_proxies(self, scope: Scope, peer: Address) -> Scope:
        headers = scope["headers"]
        forwarded_for = _values(headers, b"x-forwarded-for")
        found = client_address(peer, forwarded_for, self._proxies)
        # Without the header, all clients seem to have the proxy's address.
        has_said = bool(forwarded_for) and _entry_address(forwarded_for[-1]) is not None
        state = {**scope.get("state", {}), FOUND_BY_PROXY: has_said}
        seen = {**scope, "client": (str(found), 0), "state": state}
        # The last value is from the proxy that connected; earlier ones may be set by the client.
        protocol = next(reversed(_values(headers, b"x-forwarded-proto")), "")
        if scope["type"] == "http" and protocol in {"http", "https"}:
            seen["scheme"] = protocol
        return seen


def client_address(peer: Address, forwarded_for: list[str], proxies: Networks) -> Address:
    """The nearest address that is not a trusted proxy, counting from `peer` outwards.

    Each proxy appends its peer, so anything a client claims is to the left of its own address, and never
    used. An invalid entry ends the search at the proxy that wrote it. If all are proxies, the outermost one
    is the client.
    """
    nearest = peer
    for entry in reversed(forwarded_for):
        address = _entry_address(entry)
        if address is None:
            return nearest
        nearest = address
        if address not in proxies:
            return nearest
    return nearest


def _values(headers: Headers, name: bytes) -> list[str]:
    """The parts of a list header, over all its lines in order."""
    return [
        part.strip()
        for key, value in headers
        if key == name
        for part in value.decode("latin-1").split(",")
    ]


def _entry_address(entry: str) -> Address | None:
    """The address in `1.2.3.4`, `1.2.3.4:567`, `::1`, `[::1]` or `[::1]:567`."""
    host, port = entry, ""
    if entry.startswith("["):
        host, bracket, port = entry[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port.removeprefix(":") if port else "0"
    elif entry.count(":") == 1:
        host, _, port = entry.partition(":")
    else:
        port = "0"
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        return None
    return peer_address(host)
