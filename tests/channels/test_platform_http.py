"""Calls to a platform whose answer may be lost: none is made twice by the client, all are told in doubt."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, get_args

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.channels.http import PlatformHttp

METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "POST", "PATCH")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

#: How a connection ends on which a request was read.
End = Literal["closed", "reset", "half a status line", "half a body"]
BEGUN: dict[End, bytes] = {
    "half a status line": b"HTTP/1.1 200",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
}


class Server:
    """Answers `answers` requests of each connection, and ends it when it has read the next one whole."""

    def __init__(self, answers: int, end: End) -> None:
        self.requests: list[str] = []
        self._answers = answers
        self._end = end

    @asynccontextmanager
    async def running(self) -> AsyncIterator[PlatformHttp]:
        """What calls it."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        http = PlatformHttp(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        try:
            yield http
        finally:
            await http.close()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(self._answers):
            await self._read(reader)
            writer.write(OK)
            await writer.drain()
        await self._read(reader)
        writer.write(BEGUN.get(self._end, b""))
        if self._end == "reset":
            writer.transport.abort()
        writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        for line in head.splitlines():
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                await reader.readexactly(int(value))
        self.requests.append(head.partition(" ")[0])


#: An answer to HEAD has no body that could break off.
LOST = [
    (method, end)
    for method in METHODS
    for end in get_args(End)
    if (method, end) != ("HEAD", "half a body")
]


@pytest.mark.parametrize(("method", "end"), LOST)
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "fresh"])
async def test_a_request_that_was_read_is_made_once_and_in_doubt(
    method: str, kept: bool, end: End
) -> None:
    server = Server(int(kept), end)
    body = {"text": "once"} if method in {"PUT", "POST", "PATCH", "DELETE"} else None
    async with server.running() as http:
        if kept:
            await http.call("GET", "/")
        with pytest.raises(DeliveryError) as caught:
            await http.call(method, "/", json=body)

    assert server.requests == ["GET"] * kept + [method]
    assert (caught.value.reason, caught.value.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, True)


@pytest.mark.parametrize("end", get_args(End))
async def test_a_file_is_asked_for_once(end: End) -> None:
    server = Server(1, end)
    async with server.running() as http:
        await http.call("GET", "/")
        with pytest.raises(DeliveryError) as caught:
            await http.download("/file", io.BytesIO(), 1000)

    assert server.requests == ["GET", "GET"]
    assert caught.value.reason is Reason.PLATFORM_UNAVAILABLE


async def test_a_platform_that_does_not_listen_was_asked_nothing() -> None:
    server = Server(1, "closed")
    async with server.running() as http:
        await http.call("GET", "/")
    with pytest.raises(DeliveryError) as caught:
        await http.call("POST", "/", json={})
    await http.close()

    assert (caught.value.reason, caught.value.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)
