"""Servers on loopback that count who came, and TLS servers that note which name was asked for."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from msgsvc_devkit.deadlines import patient
from tests.faults.scripted_server import answer

#: Seconds for which a test waits for what must happen.
SOON_S = patient(30.0)


@dataclass
class Canary:
    """A server that answers "ok" and closes, or not if `is_kept`; what it was sent stands in `requests`."""

    is_kept: bool = False
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    #: What TLS clients asked for (SNI).
    names: list[str | None] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                if not self.is_kept:
                    writer.write(answer(b"ok", b"Connection: close"))
                    await writer.drain()
                    return
                writer.write(answer(b"ok"))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def canary(
    tls: ssl.SSLContext | None = None, *, is_kept: bool = False
) -> AsyncIterator[Canary]:
    """A running `Canary`."""
    bird = Canary(is_kept)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: bird.names.append(name)
    server = await asyncio.start_server(bird.serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        bird.port = server.sockets[0].getsockname()[1]
        yield bird
