"""What becomes of connections that the kernel has made, but the server has not taken, when it stops."""

import asyncio
import socket
from pathlib import Path
from typing import cast

import pytest

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.server import ConnectionLimits, Server, listener_of
from msgsvc_core.telemetry import Metrics
from tests.unit.server.conftest import PATIENCE_S, OwnRegistry, echo

POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"

#: Seconds of a drain of one turn of the main loop, at whose end the sockets are closed.
A_TURN_S = 1e-9


class _LateCaller(Server):
    """Somebody connects and sends a request just before the server closes its sockets: it has no chance to
    take the connection."""

    caller: socket.socket | None = None

    async def on_tick(self, counter: int) -> bool:
        stops = await super().on_tick(counter)
        if self._guard.draining and self.caller is None:
            [listener] = self._sockets
            self.caller = socket.socket(listener.family)
            self.caller.connect(listener.getsockname())
            self.caller.sendall(POST)
        return stops


@pytest.mark.parametrize("uds", [False, True], ids=["tcp", "unix"])
async def test_a_request_at_the_moment_of_closing_is_answered(tmp_path: Path, uds: bool) -> None:
    settings = ServerSettings(port=0, uds=tmp_path / "msgsvc.sock" if uds else None)
    guard = ConnectionLimits(settings, "https://a.example/errors", cast("Metrics", OwnRegistry()))
    server = _LateCaller(echo, guard, drain_s=A_TURN_S, signals=False)
    listener = listener_of(settings)
    address = listener.getsockname()
    task = asyncio.create_task(server.serve(sockets=[listener]))
    async with asyncio.timeout(PATIENCE_S):
        while not server.started:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        server.should_exit = True
        await task
    assert server.caller is not None
    with server.caller as caller, socket.socket(listener.family) as later:
        caller.settimeout(PATIENCE_S)
        head, _, _ = caller.recv(65536).partition(b"\r\n")
        refused = later.connect_ex(address)

    assert head.startswith(b"HTTP/1.1 200")
    assert refused != 0
    assert not (tmp_path / "msgsvc.sock").exists()
