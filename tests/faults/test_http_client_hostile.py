"""Servers that answer what no server should: a clear error at once, bounded memory, and no response taken for
that to another request."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msgsvc_core.http_client import (
    CallError,
    ConnectionLost,
    HttpClient,
    InvalidResponse,
    Limits,
    Response,
)
from tests.faults.conftest import Figure, Rounds
from tests.faults.scripted_server import CALL_S, Script, ScriptedServer, answer, chunked, client

pytestmark = pytest.mark.faults

LIMITS = Limits(max_body_bytes=64 * 1024, max_head_bytes=8 * 1024)

OK = b"HTTP/1.1 200 OK\r\n"

REFUSED = {
    "no length": OK + b"\r\nok",
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
    "one length twice": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "lengths in a list": OK + b"Content-Length: 2, 2\r\n\r\nok",
    "negative length": OK + b"Content-Length: -2\r\n\r\nok",
    "signed length": OK + b"Content-Length: +2\r\n\r\nok",
    "length in words": OK + b"Content-Length: two\r\n\r\nok",
    "length in hexadecimal": OK + b"Content-Length: 0x2\r\n\r\nok",
    "endless length": OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nok",
    "space before the colon": OK + b"Content-Length : 2\r\n\r\nok",
    "folded header": OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "bare carriage return": OK + b"X: a\rb\r\nContent-Length: 2\r\n\r\nok",
    "NUL in a header": OK + b"X: a\0b\r\nContent-Length: 2\r\n\r\nok",
    "header without a name": OK + b": a\r\nContent-Length: 2\r\n\r\nok",
    "other coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "unknown coding": OK + b"Transfer-Encoding: identity\r\n\r\nok",
    "chunked twice": OK
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk without a size": OK + b"Transfer-Encoding: chunked\r\n\r\n\r\nok\r\n0\r\n\r\n",
    "chunk of a wrong size": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nok\r\n0\r\n\r\n",
    "negative chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n",
    "chunk size of many digits": OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n",
    "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/0.9": b"hello",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "no status": b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nok",
    "switched protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "interim with a body": b"HTTP/1.1 103 Hints\r\nContent-Length: 2\r\n\r\nok" + answer(),
}


async def get(http: HttpClient, url: str, timeout_s: float = CALL_S) -> Response:
    return await http.request("GET", url, timeout_s=timeout_s, limits=LIMITS)


@pytest.mark.parametrize("by_bytes", [True, False], ids=["by bytes", "at once"])
@pytest.mark.parametrize("name", REFUSED)
async def test_a_response_without_one_certain_end_is_refused(name: str, by_bytes: bool) -> None:
    whole = REFUSED[name]
    pieces = [bytes([byte]) for byte in whole] if by_bytes else [whole]
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script(pieces, "kept"), Script([answer(b"next")])]
        with pytest.raises(InvalidResponse) as refused:
            await get(http, server.url)
        assert (await get(http, server.url)).body == b"next"

    assert refused.value.sent
    assert server.connections == 2


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "headers": (OK, b"X-Name: value\r\n"),
    "header": (OK + b"X-Name: ", b"value"),
    "status line": (b"HTTP/1.1 200 ", b"OK"),
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nmore\r\n"),
    "extensions": (OK + b"Transfer-Encoding: chunked\r\n\r\n4;a=", b"value"),
    "chunks with extensions": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
        b"1;" + b"a" * 200 + b"\r\nx\r\n",
    ),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Name: value\r\n"),
    "trailer": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Name: ", b"value"),
    "empty lines": (b"", b"\r\n" * 10),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_a_response_that_never_ends_is_given_up_with_little_memory(name: str) -> None:
    begin, again = ENDLESS[name]
    written = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(b"\r\n\r\n")
        writer.write(begin)
        block = again * (10_000 // len(again))
        try:
            # 64 MiB are as endless as anything here can hold.
            while written < 64 * 1024 * 1024:
                writer.write(block)
                await writer.drain()
                written += len(block)
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, client() as http:
        tracemalloc.start()
        with pytest.raises(InvalidResponse):
            await get(http, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert written < 16 * 1024 * 1024
    assert most < 4 * 1024 * 1024


def allocated_by(files: str) -> int:
    """Bytes that code of these files has allocated and that are still in use."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, files)])
    return sum(statistic.size for statistic in snapshot.statistics("filename"))


def generated(count: int) -> settings:
    """So many examples, anew in each run and however long they take."""
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


LINES = st.sampled_from(
    [
        b"Content-Length: 2",
        b"Content-Length: 2",
        b"Content-Length: 3",
        b"Transfer-Encoding: chunked",
        b"Content-Length: 0",
        b"content-length:2",
        b"Content-Length: 99999999999999999999",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: upgrade",
        b"Upgrade: h2c",
        b"X: \xff\xfe",
        b" folded",
        b"X",
        b": x",
        b"Content-Encoding: gzip",
        b"Retry-After: 1",
        b"Set-Cookie: a=b",
        b"Location: http://127.0.0.1:1/",
    ]
)
STARTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200",
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 204 No Content",
        b"HTTP/1.1 304 Not Modified",
        b"HTTP/1.1 100 Continue",
        b"HTTP/1.1 101 Switching Protocols",
        b"HTTP/1.1 429 Too Many Requests",
        b"HTTP/1.1 999 X",
        b"HTTP/2 200",
        b"HTTP/1.1 20 OK",
        b"GET / HTTP/1.1",
        b"",
    ]
)
ENDS = st.sampled_from([b"\r\n"] * 20 + [b"\n", b"\r"])
BODIES = st.one_of(
    st.sampled_from(
        [b"", b"ok", b"ok!", b"2\r\nok\r\n0\r\n\r\n", b"2\r\nok\r\n", b"zz\r\n", answer(b"forged")]
    ),
    st.binary(max_size=20),
)


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """A response with something wrong more often than not, or anything at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    messages = b""
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        messages += draw(STARTS) + draw(ENDS)
        for line in draw(st.lists(LINES, max_size=3)):
            messages += line + draw(ENDS)
        messages += draw(ENDS) + draw(BODIES)
    return messages


@st.composite
def cut_up(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The bytes in pieces of any size."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


PIECES = hostile().flatmap(cut_up)


async def test_no_hostile_response_hangs_or_is_taken_for_another(
    rounds: Rounds, figure: Figure
) -> None:
    count = rounds(short=300, long=100_000)
    taken = refused = 0
    loop = asyncio.get_running_loop()

    async def play(pieces: Sequence[bytes]) -> None:
        nonlocal taken, refused
        server.scripts = [Script(pieces, "closed"), Script([answer(b"mine")], "closed")]
        try:
            await get(http, server.url)
            taken += 1
        except (InvalidResponse, ConnectionLost):
            refused += 1
        # Bytes that come after the next request on that connection can't be told from its response.
        await server.has_ended(server.connections)
        # On the same client: what was left of the first must not be taken for its response.
        assert (await get(http, server.url)).body == b"mine"

    def examples() -> None:
        @generated(count)
        @given(pieces=PIECES)
        def each(pieces: Sequence[bytes]) -> None:
            asyncio.run_coroutine_threadsafe(play(pieces), loop).result(CALL_S)

        each()

    async with ScriptedServer().running() as server, client() as http:
        tracemalloc.start()
        await asyncio.to_thread(examples)
        kept = allocated_by("*/msgsvc_core/http_client/*")
        tracemalloc.stop()

    figure(
        "hostile responses to the HTTP client",
        f"{taken + refused}: {refused} refused, {taken} taken, the client keeps {kept / 1024:.0f} KiB",
        responses=taken + refused,
        refused=refused,
        taken=taken,
        kept_kib=round(kept / 1024),
    )
    assert kept < 256 * 1024
    assert taken + refused >= count
    assert taken
    assert refused


@st.composite
def plain(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A response that any client understands, and its pieces."""
    body = draw(st.binary(max_size=300))
    headers = draw(
        st.lists(
            st.tuples(
                st.from_regex(rb"X-[a-zA-Z0-9-]{1,12}", fullmatch=True),
                st.from_regex(rb"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True),
            ),
            max_size=5,
        )
    )
    lines = [name + b": " + value for name, value in headers]
    status = draw(
        st.sampled_from([b"200 OK", b"400 Bad Request", b"429 Slow", b"503 ", b"302 Found"])
    )
    if draw(st.booleans()):
        whole = answer(body, *lines, status=status)
    else:
        cuts = sorted({0, len(body), *draw(st.lists(st.integers(0, len(body)), max_size=4))})
        chunks = [body[begin:end] for begin, end in pairwise(cuts)]
        head = b"HTTP/1.1 " + status + b"\r\nTransfer-Encoding: chunked\r\n"
        encoded = b"".join(b"%X\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        whole = head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + encoded + b"0\r\n\r\n"
    return body, draw(cut_up(whole))


async def test_a_response_means_the_same_to_the_client_as_to_aiohttp(
    rounds: Rounds, figure: Figure
) -> None:
    count = rounds(short=200, long=10_000)
    compared = 0
    loop = asyncio.get_running_loop()

    async def play(body: bytes, pieces: Sequence[bytes]) -> None:
        nonlocal compared
        server.scripts = [Script(pieces, "kept")]
        ours = await get(http, server.url)
        server.scripts = [Script(pieces, "kept")]
        async with session.get(server.url, allow_redirects=False) as theirs:
            read = await theirs.read()
            names = {name.lower() for name in theirs.headers}
            assert (ours.status, ours.body) == (theirs.status, read)
            assert {name.lower() for name in ours.headers} == names
            for name in names:
                assert ours.headers.all(name) == theirs.headers.getall(name)
        assert ours.body == body
        compared += 1

    def examples() -> None:
        @generated(count)
        @given(response=plain())
        def each(response: tuple[bytes, list[bytes]]) -> None:
            asyncio.run_coroutine_threadsafe(play(*response), loop).result(CALL_S)

        each()

    async with (
        ScriptedServer().running() as server,
        client() as http,
        aiohttp.ClientSession() as session,
    ):
        await asyncio.to_thread(examples)

    figure(
        "responses read by the HTTP client and by aiohttp", f"{compared} alike", compared=compared
    )
    assert compared >= count


async def test_json_in_a_million_chunks_is_read_in_time() -> None:
    text = json.dumps({"ok": True, "result": "x" * 50_000}).encode()
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script([chunked(*[bytes([byte]) for byte in text])], "kept")]
        got = await get(http, server.url)

    assert json.loads(got.body)["ok"] is True


async def test_a_call_error_of_a_hostile_server_names_no_url() -> None:
    async with ScriptedServer().running() as server, client() as http:
        server.scripts = [Script([b"HTTP/1.1 200 OK\r\n: secret\r\n\r\n"], "kept")]
        with pytest.raises(CallError) as refused:
            await get(http, f"{server.url}/bot123:t0ken/sendMessage")

    assert "t0ken" not in str(refused.value)
