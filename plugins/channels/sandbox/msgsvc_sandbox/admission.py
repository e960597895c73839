"""Who is let in. The messenger has no passwords: whoever reaches it can act as anybody in it."""

import ipaddress
from typing import Literal

from msgsvc_core.errors import Forbidden

Who = Literal["local", "everyone"]


def check_admitted(who: Who, client_ip: str) -> None:
    """Raises `Forbidden` for a caller who may not use the messenger."""
    if who == "local" and not _is_local(client_ip):
        raise Forbidden(
            "the sandbox messenger serves this machine and private networks"
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
