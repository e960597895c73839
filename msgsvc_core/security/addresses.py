"""Classifies IP addresses as public or not."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

#: IPv4 ranges without receivers on the internet (IANA special-purpose registry, 2026-11).
CLOSED_IPV4 = tuple(
    IPv4Network(cidr)
    for cidr in (
        "0.0.0.0/8",  # this network; Linux connects 0.0.0.0 to itself
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; metadata of Alibaba Cloud
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host services, in the middle of public space
        "169.254.0.0/16",  # link-local; cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; metadata of Oracle Cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

#: All addresses that IANA has allocated to the IPv6 internet; excludes loopback, link-local, unique local and
#: multicast addresses, and unallocated ranges.
GLOBAL_UNICAST = IPv6Network("2000::/3")

#: Excluded ranges within it (IANA special-purpose registry, 2026-11).
CLOSED_IPV6 = tuple(
    IPv6Network(cidr)
    for cidr in (
        "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: any IPv4 address in disguise
        "3fff::/20",  # documentation
    )
)

#: NAT64 (RFC 6052): on an IPv6-only host, DNS64 returns such an address for every IPv4 destination. A
#: network's own NAT64 prefix is indistinguishable from ordinary addresses.
NAT64 = IPv6Network("64:ff9b::/96")

#: The upper half of an ISATAP interface id (RFC 5214), which ends in an IPv4 address, and the mask that
#: ignores its "universal" bit.
ISATAP, ISATAP_MASK = 0x0000_5EFE, 0xFDFF_FFFF

Address = IPv4Address | IPv6Address


def parse_address(text: str) -> Address | None:
    """The address in canonical form; None for any other text, or with a zone id (`%eth0`).

    A zone names a network interface of this machine, which no public address needs.
    """
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def without_wrapping(address: Address) -> Address:
    """The IPv4 destination of an IPv4-mapped or NAT64 address; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address


def is_public(address: Address) -> bool:
    """Whether the address is publicly routable."""
    target = without_wrapping(address)
    if isinstance(target, IPv4Address):
        return not any(target in network for network in CLOSED_IPV4)
    if int(target) >> 32 & ISATAP_MASK == ISATAP:
        return False
    return target in GLOBAL_UNICAST and not any(target in network for network in CLOSED_IPV6)
