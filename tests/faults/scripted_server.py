"""A server that reads a request and then writes just the bytes that a test gives it."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_core.http_client import Connector, HttpClient
from msgsvc_devkit import until

#: How a connection ends after the last piece.
End = Literal["kept", "closed", "reset"]

#: Seconds for a call that no test means to run out of.
CALL_S = 30.0


@dataclass
class Script:
    """What the server does with one request."""

    #: Written one by one, each a packet of its own where the system lets it be.
    pieces: Sequence[bytes] = ()
    end: End = "closed"
    #: Bytes of the request that are read before; None for all of it.
    read_bytes: int | None = None


@dataclass
class ScriptedServer:
    """Does the next of `scripts` for each request; what it has read stands in `requests`."""

    port: int = 0
    scripts: list[Script] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    ended: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ScriptedServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
        for writer in list(self._writers):
            writer.close()

    async def has_ended(self, count: int) -> None:
        """Waits until so many connections have been closed, and both sides know it."""
        await until(lambda: self._has_ended(count), interval_s=0.001)
        # The server's socket is closed in one turn of the loop, and the client is told in another.
        for _ in range(5):
            await asyncio.sleep(0)

    async def _has_ended(self, count: int) -> bool:
        return self.ended >= count

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._play(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has had enough
        finally:
            writer.close()
            self._writers.discard(writer)
            self.ended += 1

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """The script of one request; whether another may follow."""
        request = await _read(reader, self.scripts[0].read_bytes if self.scripts else None)
        if not self.scripts or (not request and self.scripts[0].read_bytes != 0):
            return False
        self.requests.append(request)
        script = self.scripts.pop(0)
        for piece in script.pieces:
            writer.write(piece)
            await writer.drain()
            if len(script.pieces) > 1:
                # For the client to read it alone.
                await asyncio.sleep(0)
        if script.end == "reset":
            # Zero seconds of linger: the system sends RST.
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        return script.end == "kept"


async def _read(reader: asyncio.StreamReader, size: int | None) -> bytes:
    """That many bytes of a request, or all of it; empty if none comes any more."""
    if size is not None:
        return await reader.readexactly(size) if size else b""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.partition(b":")[2]))
    return head


@asynccontextmanager
async def client(connections: int | None = 100) -> AsyncIterator[HttpClient]:
    made = HttpClient(Connector(), connections=connections)
    try:
        yield made
    finally:
        await made.close()


def answer(body: bytes = b"ok", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A plain response."""
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 " + status, length, *headers, b"", body])


def chunked(*chunks: bytes, trailers: bytes = b"") -> bytes:
    """A response in chunks."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + body + b"0\r\n" + trailers + b"\r\n"
