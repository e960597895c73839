"""A way to a server that can fall silent: nothing is forwarded, and no connection ends."""

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
        self._port = 0

    @property
    def url(self) -> str:
        netloc = f"{self._parts.username}@127.0.0.1:{self._port}"
        return urlunsplit(self._parts._replace(netloc=netloc))

    def fall_silent(self) -> None:
        self._forwards.clear()

    def go_on(self) -> None:
        """What was sent meanwhile is forwarded now, as TCP does."""
        self._forwards.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._opened, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
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
