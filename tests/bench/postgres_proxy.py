"""A TCP proxy before PostgreSQL that counts what its clients send and are sent, by the protocol's messages.

`GET /counts` on the same port answers with the counts since the start, as JSON (`Counts`). Connections are
not encrypted: a server that insists on TLS refuses them.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import cast
from urllib.parse import urlsplit

import uvloop

#: What a client may ask before its startup message: for TLS, and for GSSAPI (protocol, 55.7).
_ENCRYPTION = {80877103, 80877104}

_GET_COUNTS = b"GET "


@dataclass(slots=True)
class Counts:
    """Since the proxy's start. `statements` is how often each text was executed."""

    #: Sync and Query messages: after each the client waits for the server.
    round_trips: int = 0
    #: Execute and Query messages.
    executed: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    statements: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, text: str) -> "Counts":
        read = json.loads(text)
        return cls(**{**read, "statements": Counter(read["statements"])})

    def as_json(self) -> str:
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)})

    def since(self, before: "Counts") -> "Counts":
        return Counts(
            self.round_trips - before.round_trips,
            self.executed - before.executed,
            self.bytes_sent - before.bytes_sent,
            self.bytes_received - before.bytes_received,
            self.statements - before.statements,
        )


class _Client(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, host: str, port: int, counts: Counts) -> None:
        self._address = host, port
        self._counts = counts
        self._received = b""
        self._has_started = False
        self._connecting: asyncio.Task[None] | None = None
        self._server: _Server | None = None
        #: Texts of the prepared statements, by name, and the statement of each portal.
        self._texts: dict[bytes, str] = {}
        self._portals: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self.transport = cast("asyncio.Transport", transport)

    async def _connect(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            _, self._server = await loop.create_connection(lambda: _Server(self), *self._address)
        except OSError:
            self.transport.close()
        else:
            self._forward()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._has_started and self._received.startswith(_GET_COUNTS):
            self._answer_counts()
        elif self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())
        elif self._server is not None:
            self._forward()

    def _forward(self) -> None:
        """Sends the server all complete messages."""
        assert self._server is not None, "it is connected"
        kept = forwarded = 0
        while (size := self._message_size(kept)) is not None:
            message = self._received[kept : kept + size]
            kept += size
            if not self._has_started and int.from_bytes(message[4:8], "big") in _ENCRYPTION:
                self.transport.write(b"N")
                forwarded = kept
            elif self._has_started:
                self._count(message)
            else:
                self._has_started = True
        self._counts.bytes_sent += kept - forwarded
        self._server.transport.write(self._received[forwarded:kept])
        self._received = self._received[kept:]

    def _message_size(self, start: int) -> int | None:
        """None if it has not arrived completely. Before the startup message, messages have no type."""
        of_type = int(self._has_started)
        head = self._received[start + of_type : start + of_type + 4]
        size = of_type + int.from_bytes(head, "big")
        return size if len(head) == 4 and len(self._received) - start >= size else None

    def _count(self, message: bytes) -> None:
        kind, body = message[:1], message[5:]
        counts = self._counts
        if kind == b"S":
            counts.round_trips += 1
        elif kind == b"Q":
            counts.round_trips += 1
            self._executed(body.rstrip(b"\0").decode())
        elif kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._texts[name] = text.decode()
        elif kind == b"B":
            portal, name, _ = body.split(b"\0", 2)
            self._portals[portal] = name
        elif kind == b"E":
            self._executed(self._texts[self._portals[body.partition(b"\0")[0]]])

    def _executed(self, text: str) -> None:
        self._counts.executed += 1
        self._counts.statements[text] += 1

    def _answer_counts(self) -> None:
        body = self._counts.as_json().encode()
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)
        self.transport.close()

    def received_from_server(self, data: bytes) -> None:
        self._counts.bytes_received += len(data)
        self.transport.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._server is not None:
            self._server.transport.close()


class _Server(asyncio.Protocol):
    """The connection to the server that belongs to a client's."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._client.received_from_server(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._client.transport.close()


async def _serve(url: str) -> None:
    parts = urlsplit(url)
    host, port, counts = parts.hostname or "127.0.0.1", parts.port or 5432, Counts()
    listener = socket.create_server(("127.0.0.1", 0))
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(lambda: _Client(host, port, counts), sock=listener)
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(f"proxy {os.getpid()} listens on {here}, counting", flush=True)  # noqa: T201 - its starter reads it
    await ended.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
