"""Ranges of IP addresses in settings."""

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgsvc_core.security.addresses import Address, parse_address

Network = IPv4Network | IPv6Network

#: Bits of an IPv6 address that identify a customer of a provider, who can choose the rest freely.
IPV6_CUSTOMER_BITS = 64


class Networks:
    """Addresses and CIDR ranges. Raises ValueError, which names it, for an invalid one."""

    def __init__(self, ranges: Iterable[str]) -> None:
        self._networks = tuple(ip_network(text) for text in ranges)

    def __iter__(self) -> Iterator[Network]:
        return iter(self._networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def peer_address(text: str) -> Address | None:
    """A client's address; IPv4 as such, even if a dual-stack socket reports it as IPv6."""
    address = parse_address(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_private(host: str) -> bool:
    """Whether a host's name or address means this machine or its own network."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_private or address.is_link_local


def customer_network(text: str) -> str | None:
    """The addresses of one customer of a provider: an IPv4 address, or the first 64 bits of IPv6.

    None for an invalid address.
    """
    address = peer_address(text)
    if address is None or isinstance(address, IPv4Address):
        return None if address is None else str(address)
    return str(IPv6Network((address, IPV6_CUSTOMER_BITS), strict=False))
