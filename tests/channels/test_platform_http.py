"""Calls to a platform whose answer may be lost: none is made twice by the client, all are told in doubt."""

import asyncio

import pytest

from msgsvc_core.channels import DeliveryError
from msgsvc_core.channels.http import PlatformHttp

METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "POST", "PATCH")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers the first request of each connection, and closes after it has read the second."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (OK, b""):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head.decode().partition(" ")[0])
            writer.write(answer)
            await writer.drain()
        writer.close()


@pytest.mark.parametrize("method", METHODS)
async def test_a_request_that_a_kept_connection_took_is_not_made_again(method: str) -> None:
    behind = Server()
    server = await asyncio.start_server(behind.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    http = PlatformHttp(f"http://127.0.0.1:{port}")
    try:
        await http.call("GET", "/")
        with pytest.raises(DeliveryError) as caught:
            await http.call(method, "/")
    finally:
        await http.close()
        server.close()

    assert behind.requests == ["GET", method]
    assert caught.value.in_doubt
