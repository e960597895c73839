"""A name server for tests: every name under `.test` is this machine, as long as names can be resolved."""

import socket
from typing import Any

import pytest


class Names:
    """Stands before `socket.getaddrinfo`, which asyncio, asyncpg, redis and aiohttp all ask in the end."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.are_resolved = True
        #: How often a name was asked for in vain.
        self.failed = 0
        self._look_up = socket.getaddrinfo
        patch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not (isinstance(name, str) and name.endswith(".test")):
            return self._look_up(host, *arguments, **options)
        if self.are_resolved:
            return self._look_up("127.0.0.1", *arguments, **options)
        self.failed += 1
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
