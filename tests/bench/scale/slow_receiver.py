"""A receiver of webhooks: a call to `/slow...` is answered after `DELAY_S`, any other at once.

`GET /open` answers with the number of its open connections.
"""

import asyncio
import re
import signal
import socket
from typing import cast

import uvloop

#: Seconds until a slow call is answered: half of what a delivery may take.
DELAY_S = 5.0

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"

_open: set["SlowReceiver"] = set()


class SlowReceiver(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = b""
        self._held: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        _open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        _open.discard(self)
        if self._held is not None:
            self._held.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_END)
        if end < 0:
            return
        head = self._received[:end]
        length = _LENGTH.search(head)
        if len(self._received) < end + len(_END) + int(length[1] if length else 0):
            return
        self._received = b""
        if head.startswith(b"POST /slow"):
            self._held = asyncio.get_running_loop().call_later(DELAY_S, self._answer)
        else:
            self._answer(b"%d" % len(_open) if head.startswith(b"GET /open") else b"")

    def _answer(self, body: bytes = b"") -> None:
        self._transport.write(_ANSWER % (len(body), body))


async def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(SlowReceiver, sock=listener)
    print(f"receiver listens on http://127.0.0.1:{listener.getsockname()[1]}, slowly", flush=True)  # noqa: T201 - its starter reads it
    await ended.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve())
