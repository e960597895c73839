"""Receivers of webhooks in a process of their own: healthy, trickling, or failing now and then.

Run as a script with the path of a file, which gets a line for each request: when it came (Unix
seconds), its path, and its headers and body. By the path's first segment:

    /ok/...       answers 200 at once
    /trickle/...  promises an answer and sends a byte of it a second
    /flaky/...    answers 503 to three of ten requests, and 200 to the others
"""

import asyncio
import json
import os
import random
import signal
import socket
import sys
import time
from typing import TextIO, cast

import uvloop

_END = b"\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
_BEGUN = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"

#: The share of requests that a flaky receiver fails.
FAILING = 0.3

#: Seconds between two bytes.
TRICKLE_S = 1.0


class Receiver(asyncio.Protocol):
    """One connection."""

    def __init__(self, log: TextIO) -> None:
        self._log = log
        self._received = b""
        self._trickling: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._trickling is not None:
            self._trickling.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END)) >= 0:
            first, *lines = self._received[:end].decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            whole = end + len(_END) + int(headers["content-length"])
            if len(self._received) < whole:
                return
            body = self._received[end + len(_END) : whole].decode()
            self._received = self._received[whole:]
            self._answer(first.split(" ")[1], headers, body)

    def _answer(self, path: str, headers: dict[str, str], body: str) -> None:
        line = {"at_s": time.time(), "path": path, "headers": headers, "body": body}
        kind = path.split("/")[1]
        if kind == "trickle":
            self._transport.write(_BEGUN)
            self._trickle()
        elif kind == "flaky" and random.random() < FAILING:
            line["failed"] = True
            self._transport.write(_BUSY)
        else:
            self._transport.write(_OK)
        self._log.write(json.dumps(line) + "\n")

    def _trickle(self) -> None:
        self._transport.write(b".")
        self._trickling = asyncio.get_running_loop().call_later(TRICKLE_S, self._trickle)


async def _serve(log: TextIO) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(lambda: Receiver(log), sock=listener)
    port = listener.getsockname()[1]
    print(f"receivers {os.getpid()} listens on http://127.0.0.1:{port}, of all kinds", flush=True)  # noqa: T201 - its starter reads it
    await ended.wait()
    server.close()


if __name__ == "__main__":
    with open(sys.argv[1], "w", buffering=1, encoding="utf-8") as log_file:
        uvloop.run(_serve(log_file))
