"""A way to a server that can fall silent, so that nothing is forwarded and no connection ends, or refuse."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Stands before the server of `url`; `url` of its own leads there by way of it."""

    def __init__(self, url: str) -> None:
        #: The server itself.
        self.direct_url = url
        self._parts = urlsplit(url)
        self._forwards = asyncio.Event()
        self._forwards.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return self.url_by("127.0.0.1")

    def url_by(self, name: str) -> str:
        """The same by another name of this machine."""
        user, at, _ = self._parts.netloc.rpartition("@")
        return urlunsplit(self._parts._replace(netloc=f"{user}{at}{name}:{self._port}"))

    def fall_silent(self) -> None:
        self._forwards.clear()

    def go_on(self) -> None:
        """What was sent meanwhile is forwarded now, as TCP does."""
        self._forwards.set()

    def cut(self) -> None:
        """Ends every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def refuse(self) -> None:
        """Nobody listens any more, and every connection is cut."""
        assert self._server is not None, "it is running"
        self._server.close()
        self._server = None
        self.cut()

    async def listen(self) -> None:
        """Takes connections, after `refuse` on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._opened, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        await self.listen()
        try:
            yield self
        finally:
            if self._server is not None:
                self._server.close()
            for writer in self._writers:
                writer.close()
            for pump in list(self._pumps):
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _opened(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        host, port = self._parts.hostname, self._parts.port
        there, back = await asyncio.open_connection(host, port or 5432)
        self._writers.add(back)
        if self._server is None:
            # It was let in just before `refuse`, which could not cut it yet.
            writer.transport.abort()
            back.transport.abort()
            return
        for source, target in ((reader, back), (there, writer)):
            pump = asyncio.ensure_future(self._pump(source, target))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._forwards.wait()
                target.write(data)
                await target.drain()
        await self._forwards.wait()
        target.close()
