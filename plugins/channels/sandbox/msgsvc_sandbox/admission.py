"""Who is let in. The messenger has no passwords: whoever reaches it can act as anybody in it."""

import ipaddress
from collections.abc import Awaitable, Callable
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.errors import Forbidden

Handler = Callable[[Request], Awaitable[Response]]
Who = Literal["local", "everyone"]


def admitting(who: Who, handler: Handler) -> Handler:
    """`handler` for those who may use the messenger; `Forbidden` for the others."""

    async def admitted(request: Request) -> Response:
        if who == "local" and not _is_local(request):
            raise Forbidden(
                "the sandbox messenger is for this machine and private networks"
                " (setting `sandbox.pages`)"
            )
        if request.method != "GET" and request.headers.get("sec-fetch-site") == "cross-site":
            raise Forbidden("another site must not act for a person in the sandbox messenger")
        return await handler(request)

    return admitted


def _is_local(request: Request) -> bool:
    """Whether the caller is on this machine or a private network.

    A caller without an IP address came by no network: a test in this process, or a local socket.
    """
    if request.client is None:
        return True
    try:
        address = ipaddress.ip_address(request.client.host)
    except ValueError:
        return True
    return address.is_loopback or address.is_private or address.is_link_local
