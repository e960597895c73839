"""Requests: what is sent, what is refused before, how calls end in time, and bodies read in parts."""

import asyncio
import socket
import traceback
import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from msgsvc_core.http_client import (
    CallTimeout,
    ConnectionLost,
    Connector,
    HttpClient,
    InvalidResponse,
    Limits,
    NoConnectionInTime,
    StreamedResponse,
)
from msgsvc_devkit import until
from tests.faults.scripted_server import CALL_S, Script, ScriptedServer, answer, chunked, client
from tests.http_client.conftest import OnUvloop
from tests.http_client.servers import SOON_S

#: A body that ends with the connection.
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"

#: Bytes of a body that fills all buffers between server and client several times.
LARGE = 64 * 1024 * 1024

#: Bytes that server and client together may hold of it.
HELD = 2 * 1024 * 1024


async def request_of(method: str = "GET", path: str = "/", **options: Any) -> list[str]:
    """The lines of a request as a server gets it, and its body as the last."""
    async with ScriptedServer(scripts=[Script([answer()])]).running() as server, client() as http:
        await http.request(method, server.url + path, timeout_s=CALL_S, **options)
    lines = server.requests[0].decode().split("\r\n")
    return [line.replace(f":{server.port}", "") for line in lines]


async def test_a_request_is_sent_as_the_standard_has_it() -> None:
    assert await request_of("POST", "/path?q=1#part", body=b"body", content_type="text/plain") == [
        "POST /path?q=1 HTTP/1.1",
        "Host: 127.0.0.1",
        "User-Agent: msgsvc",
        "Accept: */*",
        "Accept-Encoding: identity",
        "Content-Type: text/plain",
        "Content-Length: 4",
        "",
        "body",
    ]


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("GET", None, None),
        ("HEAD", None, None),
        ("DELETE", None, None),
        ("POST", None, "0"),
        ("PUT", b"", "0"),
        ("GET", b"x", "1"),
        ("PATCH", b"x", "1"),
    ],
)
async def test_a_request_has_a_length_where_it_may_have_a_body(
    method: str, body: bytes | None, length: str | None
) -> None:
    lines = await request_of(method, body=body)

    lengths = [line for line in lines if line.startswith("Content-Length")]
    assert lengths == ([f"Content-Length: {length}"] if length is not None else [])


@pytest.mark.parametrize(
    ("path", "params", "target"),
    [
        ("", {"a": "1"}, "/?a=1"),
        ("/p", {"a": "1", "b": "2"}, "/p?a=1&b=2"),
        ("/p?z=0", {"a": "1"}, "/p?z=0&a=1"),
        ("/p", {"a b": "&=#?/+"}, "/p?a+b=%26%3D%23%3F%2F%2B"),
        ("/p", {"ж": "я\r\n"}, "/p?%D0%B6=%D1%8F%0D%0A"),
        ("/p", {"empty": ""}, "/p?empty="),
        ("/p", {}, "/p"),
        ("/p#part", {"a": "1"}, "/p?a=1"),
        ("/я b", None, "/%D1%8F%20b"),
        ("/p%2Fq%20r", None, "/p%2Fq%20r"),
        ("/a\r\nX: y", None, "/aX:%20y"),
    ],
)
async def test_params_are_added_to_the_query(
    path: str, params: Mapping[str, str] | None, target: str
) -> None:
    lines = await request_of("GET", path, params=params)

    assert lines[0] == f"GET {target} HTTP/1.1"
    assert lines[1] == "Host: 127.0.0.1"


async def test_params_of_one_call_are_not_sent_with_the_next() -> None:
    async with ScriptedServer().running() as server, client() as http:
        for params in ({"a": "1"}, {"a": "2"}, None):
            server.scripts = [Script([answer()], "kept")]
            await http.request("GET", f"{server.url}/p", params=params, timeout_s=CALL_S)

    targets = [request.split(b" ")[1] for request in server.requests]
    assert targets == [b"/p?a=1", b"/p?a=2", b"/p"]


async def test_a_login_in_the_url_is_not_sent() -> None:
    async with ScriptedServer(scripts=[Script([answer()])]).running() as server, client() as http:
        url = server.url.replace("//", "//user:s3cret@")
        await http.request("GET", url, timeout_s=CALL_S)

    assert b"s3cret" not in server.requests[0]
    assert b"authorization" not in server.requests[0].lower()


async def test_headers_of_a_call_come_before_those_of_the_client_and_its_defaults() -> None:
    server = ScriptedServer(scripts=[Script([answer()])])
    http = HttpClient(Connector(), headers={"user-agent": "client", "X-Of-Client": "1"})
    async with server.running():
        headers = {"X-OF-CLIENT": "2", "accept": "text/html", "X-Own": "grüß"}
        await http.request("GET", server.url, headers=headers, timeout_s=CALL_S)
        await http.close()

    assert server.requests[0].decode().split("\r\n")[2:-2] == [
        "user-agent: client",
        "accept: text/html",
        "Accept-Encoding: identity",
        "X-OF-CLIENT: 2",
        "X-Own: grüß",
    ]


async def refused(message: str | None = None, **options: Any) -> None:
    """A call that is refused before anything is sent, without saying the secret in it."""
    async with ScriptedServer().running() as server, client() as http:
        arguments: dict[str, Any] = {"method": "GET", "url": server.url, **options}
        with pytest.raises(ValueError, match=message) as error:
            await http.request(**arguments, timeout_s=CALL_S)
        with pytest.raises(ValueError, match=message):
            async with http.stream(**arguments, timeout_s=CALL_S):
                pass

    assert "s3cret" not in "".join(traceback.format_exception_only(error.value))
    assert server.connections == 0


@pytest.mark.parametrize("bad", ["\r\nX: y", "\n", "\r", "\0", "\x1b", "\x7f", "\ud800"])
async def test_a_header_that_would_end_early_is_refused(bad: str) -> None:
    await refused(headers={"X-Token": f"s3cret{bad}"})
    await refused(content_type=f"s3cret{bad}")


@pytest.mark.parametrize("name", ["", "X Y", "X:", "X\r\nY", "X\t", "Ж", 'X"', "X(", "X\0"])
async def test_a_header_without_a_proper_name_is_refused(name: str) -> None:
    await refused("header", headers={name: "s3cret"})


@pytest.mark.parametrize(
    "name", ["Host", "host", "Content-Length", "content-length", "Transfer-Encoding"]
)
async def test_a_header_that_the_client_sets_is_refused(name: str) -> None:
    await refused("Host", headers={name: "s3cret"})


@pytest.mark.parametrize("method", ["", "GET ", "GET /x HTTP/1.1\r\n", "G\0", "ГЕТ", "GET,POST"])
async def test_what_is_no_method_is_refused(method: str) -> None:
    await refused("method", method=method)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/path/s3cret",
        "//127.0.0.1/s3cret",
        "ftp://127.0.0.1/s3cret",
        "http:///s3cret",
        "http://127.0.0.1:0/s3cret",
        "http://127.0.0.1:99999/s3cret",
        "http://127.0.0.1:s3cret/",
        "http://[::1/s3cret",
        "http://one two/s3cret",
        "http://one\r\nX: y/s3cret",
        "http://one,two/s3cret",
        "http://<one>/s3cret",
    ],
)
async def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    await refused(url=url)


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong",
    ],
)
async def test_the_response_to_head_has_no_body(response: bytes) -> None:
    async with ScriptedServer().running() as server, client(1) as http:
        server.scripts = [Script([response], "kept"), Script([answer(b"next")])]
        async with asyncio.timeout(SOON_S):
            head = await http.request("HEAD", server.url, timeout_s=CALL_S)
            following = await http.request("GET", server.url, timeout_s=CALL_S)

    assert (head.status, head.body) == (200, b"")
    assert head.content_length == (5 if b"Length" in response else None)
    assert following.body == b"next"


@pytest.mark.parametrize(
    ("status", "header"),
    [
        (b"204 No Content", b""),
        (b"304 Not Modified", b""),
        (b"304 Not Modified", b"Content-Length: 5\r\n"),
    ],
)
async def test_a_status_without_a_body_ends_with_its_head(status: bytes, header: bytes) -> None:
    response = b"HTTP/1.1 " + status + b"\r\n" + header + b"\r\n"
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script([response], "kept"), Script([answer(b"next")], "kept")]
        async with asyncio.timeout(SOON_S):
            empty = await http.request("GET", server.url, timeout_s=CALL_S)
            following = await http.request("GET", server.url, timeout_s=CALL_S)

    assert (empty.status, empty.body) == (int(status[:3]), b"")
    assert following.body == b"next"
    assert server.connections == 1


async def test_headers_are_found_in_any_case_and_kept_in_order() -> None:
    response = answer(b"", b"X-One: 1", "x-two: grüß".encode(), b"X-ONE: 3")
    async with ScriptedServer(scripts=[Script([response])]).running() as server, client() as http:
        headers = (await http.request("GET", server.url, timeout_s=CALL_S)).headers

    assert headers["x-one"] == "1"
    assert headers.all("X-one") == ["1", "3"]
    assert headers["X-Two"] == "grüß"
    assert "X-Three" not in headers
    assert list(headers)[1:3] == ["X-One", "x-two"]


async def test_a_server_that_accepts_no_connection_is_given_up() -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # The system holds these for it, and drops what comes after.
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with client() as http:
            with pytest.raises(NoConnectionInTime) as late:
                url = f"http://127.0.0.1:{full.getsockname()[1]}"
                await http.request("GET", url, timeout_s=0.2)

    assert not late.value.sent


@asynccontextmanager
async def connected(*scripts: Script) -> AsyncIterator[tuple[ScriptedServer, HttpClient]]:
    """A client that has its connection already: then a short timeout is for the response alone."""
    server = ScriptedServer(scripts=[Script([answer()], "kept"), *scripts])
    async with server.running(), client(1) as http:
        await http.request("GET", server.url, timeout_s=CALL_S)
        yield server, http


async def late_answer() -> None:
    async with connected(Script([], "kept")) as (server, http):
        with pytest.raises(CallTimeout) as late:
            await http.request("POST", server.url, body=b"x", timeout_s=0.1)
        await server.has_ended(1)

    assert late.value.sent
    assert isinstance(late.value, TimeoutError)


async def test_a_server_that_does_not_answer_in_time_may_have_got_the_request() -> None:
    await late_answer()


async def test_a_body_that_does_not_end_in_time_may_be_that_of_a_request_done() -> None:
    async with connected(Script([answer(b"four")[:-1]], "kept")) as (server, http):
        with pytest.raises(CallTimeout) as late:
            await http.request("POST", server.url, body=b"x", timeout_s=0.1)

    assert late.value.sent


async def test_a_stream_has_to_end_in_time_with_its_block() -> None:
    came = b""
    script = Script([answer(b"four")[:-1]], "kept")
    async with connected(script, Script([answer(b"next")])) as (server, http):
        with pytest.raises(CallTimeout) as late:
            async with http.stream("GET", server.url, timeout_s=0.1) as response:
                async for part in response.parts():
                    came += part
        following = await http.request("GET", server.url, timeout_s=CALL_S)

    assert late.value.sent
    assert came == b"fou"
    assert following.body == b"next"
    assert server.connections == 2


async def test_a_stream_without_a_head_in_time_is_given_up() -> None:
    async with connected(Script([], "kept")) as (server, http):
        with pytest.raises(CallTimeout) as late:
            async with http.stream("GET", server.url, timeout_s=0.1):
                pytest.fail("there is no response")

    assert late.value.sent


async def cancelled_call() -> None:
    async with ScriptedServer().running() as server, client(1) as http:
        server.scripts = [Script([answer(b"four")[:-1]], "kept"), Script([answer(b"next")])]

        async def is_asked() -> bool:
            return bool(server.requests)

        call = asyncio.create_task(http.request("GET", server.url, timeout_s=CALL_S))
        await until(is_asked, interval_s=0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # The connection was closed, and its place is free.
        await server.has_ended(1)
        assert (await http.request("GET", server.url, timeout_s=CALL_S)).body == b"next"
        assert server.connections == 2


async def test_a_cancelled_call_closes_its_connection() -> None:
    await cancelled_call()


async def whole(response: StreamedResponse) -> bytes:
    return b"".join([part async for part in response.parts()])


@pytest.mark.parametrize("response", [answer(b"body"), chunked(b"bo", b"dy"), answer(b"")])
async def test_after_a_stream_was_read_its_connection_is_used_again(response: bytes) -> None:
    async with ScriptedServer().running() as server, client() as http:
        for _ in range(3):
            server.scripts = [Script([response], "kept")]
            async with http.stream("GET", server.url, timeout_s=CALL_S) as streamed:
                assert streamed.status == 200
                assert await whole(streamed) in {b"body", b""}

    assert server.connections == 1


@pytest.mark.parametrize("how", ["unread", "in part", "raised"])
async def test_after_half_of_a_stream_its_connection_is_not_used_again(how: str) -> None:
    begin = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500
    async with ScriptedServer().running() as server, client(1) as http:
        server.scripts = [Script([begin], "kept"), Script([answer(b"next")])]
        try:
            async with http.stream("GET", server.url, timeout_s=CALL_S) as streamed:
                if how == "in part":
                    assert await anext(streamed.parts())
                if how == "raised":
                    raise KeyError("the caller's own")
        except KeyError:
            assert how == "raised"
        following = await http.request("GET", server.url, timeout_s=CALL_S)

    assert following.body == b"next"
    assert server.connections == 2


async def test_a_stream_that_is_cut_says_so_after_what_has_come() -> None:
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script([answer(b"x" * 10)[:-5]])]
        came = b""
        with pytest.raises(ConnectionLost) as lost:
            async with http.stream("GET", server.url, timeout_s=CALL_S) as streamed:
                async for part in streamed.parts():
                    came += part

    assert came == b"x" * 5
    assert lost.value.in_body
    assert lost.value.sent


@dataclass
class Fountain:
    """A server that sends `LARGE` bytes, as fast as the client takes them."""

    head: bytes
    written: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        block = b"x" * 64 * 1024
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.head)
            while self.written < LARGE:
                writer.write(block)
                await writer.drain()
                self.written += len(block)
        except ConnectionError:
            pass
        finally:
            writer.close()
            self.ended.set()

    async def stands_still(self) -> None:
        """Waits until nothing more is taken."""
        before = -1
        while before != self.written:
            before = self.written
            await asyncio.sleep(0.05)


async def slow_reader() -> int:
    """Bytes that the server could write while the client read one part."""
    server = Fountain(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
    async with server.running() as url, client() as http:
        async with http.stream("GET", url, timeout_s=CALL_S) as streamed:
            parts = streamed.parts()
            read = len(await anext(parts))
            await server.stands_still()
            written = server.written
            async for part in parts:
                read += len(part)
        await server.ended.wait()
    assert read == LARGE
    return written


async def test_a_slow_reader_of_a_stream_holds_the_server_up() -> None:
    tracemalloc.start()
    written = await slow_reader()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # The rest stands in the system's buffers.
    assert written < LARGE // 2
    assert most < HELD


async def test_a_stream_that_nobody_reads_is_dropped_with_its_connection() -> None:
    server = Fountain(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
    async with server.running() as url, client() as http:
        async with http.stream("GET", url, timeout_s=CALL_S):
            await server.stands_still()
        async with asyncio.timeout(SOON_S):
            await server.ended.wait()

    assert server.written < LARGE


async def body_until_close() -> None:
    limits = Limits(max_body_bytes=10, until_close=True)
    async with ScriptedServer().running() as server, client(1) as http:

        async def get(limits: Limits = limits) -> bytes:
            return (await http.request("GET", server.url, timeout_s=CALL_S, limits=limits)).body

        server.scripts = [Script([UNTIL_CLOSE, b"12345", b"67890"])]
        assert await get() == b"1234567890"
        server.scripts = [Script([UNTIL_CLOSE])]
        assert await get() == b""
        # One byte too many, at the end or long before it.
        for end in (b"1", b"1" * 100_000):
            server.scripts = [Script([UNTIL_CLOSE, b"1234567890", end])]
            with pytest.raises(InvalidResponse):
                await get()
        server.scripts = [Script([UNTIL_CLOSE, b"12345"], "reset")]
        with pytest.raises(ConnectionLost) as lost:
            await get()
        assert lost.value.in_body
        # Only if the caller can do with half of it.
        server.scripts = [Script([UNTIL_CLOSE, b"12345"])]
        with pytest.raises(InvalidResponse):
            await get(Limits())
        # A length is the better end.
        server.scripts = [Script([answer(b"whole")[:-1]])]
        with pytest.raises(ConnectionLost):
            await get()
        server.scripts = [Script([UNTIL_CLOSE, b"1" * 1000])]
        async with http.stream("GET", server.url, timeout_s=CALL_S, limits=limits) as streamed:
            assert await whole(streamed) == b"1" * 1000


async def test_a_body_may_end_with_the_connection_if_the_caller_says_so() -> None:
    await body_until_close()


@pytest.mark.parametrize("make", [answer, chunked])
async def test_a_body_is_as_large_as_its_limit_at_most(make: Callable[[bytes], bytes]) -> None:
    limits = Limits(max_body_bytes=10)
    async with ScriptedServer().running() as server, client(1) as http:
        server.scripts = [Script([make(b"x" * 10)], "kept")]
        response = await http.request("GET", server.url, timeout_s=CALL_S, limits=limits)
        server.scripts = [Script([make(b"x" * 11)], "kept")]
        with pytest.raises(InvalidResponse) as large:
            await http.request("GET", server.url, timeout_s=CALL_S, limits=limits)

    assert response.body == b"x" * 10
    assert large.value.sent


async def test_requests_work_under_uvloop(on_uvloop: OnUvloop) -> None:
    async def scenario() -> None:
        assert (await request_of("POST", "/p", body=b"x"))[-1] == "x"
        await cancelled_call()
        assert await slow_reader() < LARGE
        await body_until_close()
        await late_answer()

    await on_uvloop(scenario())
