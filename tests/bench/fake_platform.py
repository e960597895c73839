"""A messenger's Bot API that says yes to everything, as cheaply as Python can say it.

Answers as Telegram's does. It reads no more of a call than its length: the machine's cores are
shared, and what this process takes is missing to the one that is measured.
"""

import asyncio
import os
import signal
import socket
from typing import cast

import uvloop

_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"


class FakePlatform(asyncio.Protocol):
    """One connection. Every message gets the next number of it."""

    def __init__(self) -> None:
        self._received = b""
        self._last_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END)) >= 0:
            head = self._received[:end].lower()
            _, _, after = head.partition(_LENGTH)
            whole = end + len(_END) + int(after.partition(b"\r\n")[0])
            if len(self._received) < whole:
                return
            self._received = self._received[whole:]
            self._answer()

    def _answer(self) -> None:
        self._last_id += 1
        body = b'{"ok":true,"result":{"message_id":%d}}' % self._last_id
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )


async def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(FakePlatform, sock=listener)
    port = listener.getsockname()[1]
    print(f"platform {os.getpid()} listens on http://127.0.0.1:{port}, always kind", flush=True)  # noqa: T201 - its starter reads it
    await ended.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve())
