"""What connections do to requests, on real sockets, by both sides of the transport."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from msgsvc_client import (
    AsyncClient,
    Client,
    ConnectionBroken,
    Request,
    RequestTimeout,
    RetryPolicy,
    TransportError,
)
from msgsvc_client._async.transport import AsyncHttpxTransport
from msgsvc_client._sync.transport import HttpxTransport

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

ANSWER = b'{"message_id": "msg_1", "status": "queued"}'
LONG_S = 60.0
HEAD = b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)


@asynccontextmanager
async def server(handle: Handle) -> AsyncIterator[str]:
    """A server that reads a request's head and then does this, on an address of its own."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await handle(reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client, or `handle`, has closed the connection
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1")
    host, port = listening.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        listening.close()


async def answers(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + ANSWER)


async def hangs_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def ends_in_the_middle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + ANSWER[:10])
    writer.close()


async def says_nothing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    return


async def stops_in_the_middle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + ANSWER[:10])


async def is_not_encoded(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain")


FAILURES = [
    (is_not_encoded, ConnectionBroken),
    (hangs_up, ConnectionBroken),
    (ends_in_the_middle, ConnectionBroken),
    (says_nothing, RequestTimeout),
    (stops_in_the_middle, RequestTimeout),
]


@pytest.mark.parametrize(("handle", "expected"), FAILURES)
async def test_a_failure_is_told_by_its_kind(
    handle: Handle, expected: type[TransportError]
) -> None:
    script: list[Handle] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script.pop(0)(reader, writer)

    async with server(serve) as url:
        request = Request("GET", url, {})
        script += [answers, handle]
        asynchronous = AsyncHttpxTransport()
        # With its connection made, a short timeout is for the response alone.
        await (await asynchronous.send(request, LONG_S)).read()
        with pytest.raises(expected) as caught:
            await (await asynchronous.send(request, 0.2)).read()
        await asynchronous.aclose()

        def sync() -> None:
            transport = HttpxTransport()
            transport.send(request, LONG_S).read()
            with pytest.raises(expected):
                transport.send(request, 0.2).read()
            transport.close()

        script += [answers, handle]
        await asyncio.to_thread(sync)

    assert type(caught.value) is expected


async def test_a_call_succeeds_after_connections_that_broke_or_were_silent() -> None:
    script: list[Handle] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        if script:
            await script.pop(0)(reader, writer)
        else:
            writer.write(HEAD + ANSWER)

    retries = RetryPolicy(base_s=0)
    async with server(serve) as url:
        script += [hangs_up, ends_in_the_middle, says_nothing]
        async with AsyncClient("msk_x", url, timeout_s=1, retries=retries) as client:
            sent = await client.messages.send(external_id="ann-1", text="Hi")
        assert (sent.message_id, script) == ("msg_1", [])

        def sync() -> str:
            with Client("msk_x", url, timeout_s=1, retries=retries) as client:
                return client.messages.send(external_id="ann-1", text="Hi").message_id

        script += [hangs_up, ends_in_the_middle, says_nothing]
        assert await asyncio.to_thread(sync) == "msg_1"
        assert script == []


async def test_infinity_is_no_limit() -> None:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + ANSWER)

    async with server(serve) as url:
        request = Request("GET", url, {})
        asynchronous = AsyncHttpxTransport()
        assert await (await asynchronous.send(request, math.inf)).read() == ANSWER
        await asynchronous.aclose()

        def sync() -> bytes:
            transport = HttpxTransport()
            content = transport.send(request, math.inf).read()
            transport.close()
            return content

        assert await asyncio.to_thread(sync) == ANSWER


async def test_calls_do_not_wait_for_others_that_the_service_holds() -> None:
    # More than httpx2 connects to by default.
    all_there = asyncio.Barrier(120)

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await all_there.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with server(serve) as url:
        transport = AsyncHttpxTransport()
        held = [transport.send(Request("GET", url, {}), 20) for _ in range(120)]
        statuses = [answer.status for answer in await asyncio.gather(*held)]
        await transport.aclose()

    assert statuses == [200] * 120
