"""A messenger's Bot API that says yes to everything, as cheaply as Python can say it.

Answers as Telegram's does, with a whole message, which clients of Telegram's own look for. It reads no
more of a call than its method and its length: the machine's cores are shared, and what this process
takes is missing to the one that is measured.

With the path of a certificate and its key as argument, it speaks TLS as `localhost`.

`GET /arrivals` answers with the times at which messages to chats `of-many-...` came since it was asked
last, in seconds of a clock of its own. Messages to chats `refused-...` are refused.
"""

import asyncio
import json
import os
import signal
import socket
import ssl
import sys
import time
from typing import cast

import uvloop

_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"

_MESSAGE = (
    b'{"ok":true,"result":{"message_id":%d,"date":1767225600,"chat":{"id":1,"type":"private"},'
    b'"text":"Your order 4711 is on its way and arrives tomorrow between 10 and 12."}}'
)
#: What a client asks before its first call.
_GET_ME = b"/getme http"
_BOT = b'{"ok":true,"result":{"id":1,"is_bot":true,"first_name":"Bench","username":"bench_bot"}}'
_GET_ARRIVALS = b"get /arrivals "
_OF_MANY = b"of-many-"
_TO_REFUSE = b'"refused-'
_REFUSAL = b'{"ok":false,"error_code":400,"description":"Bad Request: the bench refuses it"}'

#: Of this process: when messages of broadcasts came.
_arrivals: list[float] = []


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
            whole = end + len(_END) + int(after.partition(b"\r\n")[0] or 0)
            if len(self._received) < whole:
                return
            body, self._received = self._received[end:whole], self._received[whole:]
            if _TO_REFUSE in body:
                self._answer(_REFUSAL, b"400 Bad Request")
            else:
                self._answer(self._found(head, body))

    def _found(self, head: bytes, body: bytes) -> bytes:
        if _OF_MANY in body:
            _arrivals.append(time.monotonic())
        elif _GET_ME in head:
            return _BOT
        elif head.startswith(_GET_ARRIVALS):
            told = json.dumps(_arrivals).encode()
            _arrivals.clear()
            return told
        return self._message()

    def _message(self) -> bytes:
        self._last_id += 1
        return _MESSAGE % self._last_id

    def _answer(self, body: bytes, status: bytes = b"200 OK") -> None:
        self._transport.write(
            b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (status, len(body), body)
        )


async def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    tls = None
    base = "http://127.0.0.1"
    if sys.argv[1:]:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(sys.argv[1])
        base = "https://localhost"
    server = await loop.create_server(FakePlatform, sock=listener, ssl=tls)
    port = listener.getsockname()[1]
    print(f"platform {os.getpid()} listens on {base}:{port}, always kind", flush=True)  # noqa: T201 - its starter reads it
    await ended.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve())
