"""TLS: whom the client trusts, and handshakes that fail."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from msgsvc_core.http_client import (
    Connector,
    HttpClient,
    NoConnectionInTime,
    NotConnected,
    Response,
    pool,
)
from msgsvc_core.http_client.connecting import trust
from msgsvc_core.http_client.errors import ConnectionLost
from msgsvc_devkit.certificates import server_context, write_certificate
from tests.faults.scripted_server import CALL_S, answer
from tests.http_client.conftest import OnUvloop
from tests.http_client.servers import SOON_S, canary


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of `localhost`, to trust."""
    return write_certificate(tmp_path_factory.mktemp("tls") / "known.pem", "localhost")


@asynccontextmanager
async def client(ca_file: Path | None) -> AsyncIterator[HttpClient]:
    http = HttpClient(Connector(ca_file=str(ca_file) if ca_file else None))
    try:
        yield http
    finally:
        await http.close()


async def get(http: HttpClient, port: int, timeout_s: float = CALL_S) -> Response:
    return await http.request("GET", f"https://localhost:{port}/", timeout_s=timeout_s)


async def refusal(ca_file: Path | None, port: int) -> OSError | None:
    """Why a call has no connection."""
    async with client(ca_file) as http:
        with pytest.raises(NotConnected) as refused:
            await get(http, port)
    assert not refused.value.sent
    return refused.value.cause


async def trusted(made: Path) -> None:
    async with canary(server_context(made), is_kept=True) as server, client(made) as http:
        for _ in range(3):
            assert (await get(http, server.port)).body == b"ok"
        assert server.connections == 1
        assert server.names == ["localhost"]


async def test_a_server_whose_authority_is_in_the_file_is_trusted(known: Path) -> None:
    await trusted(known)


async def test_another_authority_is_not_trusted(known: Path, tmp_path: Path) -> None:
    stranger = write_certificate(tmp_path / "stranger.pem", "localhost")
    async with canary(server_context(stranger)) as server:
        for ca_file in (known, None):
            cause = await refusal(ca_file, server.port)
            assert isinstance(cause, ssl.SSLCertVerificationError)

    assert server.requests == []


async def test_the_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    other = write_certificate(tmp_path / "other.pem", "other.test")
    async with canary(server_context(other)) as server:
        cause = await refusal(other, server.port)

    assert isinstance(cause, ssl.SSLCertVerificationError)
    assert "localhost" in str(cause)
    assert server.requests == []


async def test_an_address_needs_a_certificate_of_its_own(known: Path) -> None:
    async with canary(server_context(known)) as server, client(known) as http:
        with pytest.raises(NotConnected) as refused:
            await http.request("GET", f"https://127.0.0.1:{server.port}/", timeout_s=CALL_S)

    assert isinstance(refused.value.cause, ssl.SSLCertVerificationError)


async def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    expired = write_certificate(tmp_path / "old.pem", "localhost", ends_in=timedelta(days=-1))
    async with canary(server_context(expired)) as server:
        cause = await refusal(expired, server.port)

    assert isinstance(cause, ssl.SSLCertVerificationError)
    assert "expired" in str(cause)
    assert server.requests == []


@asynccontextmanager
async def raw_server(reply: bytes, *, is_reset: bool = False) -> AsyncIterator[int]:
    """Reads the beginning of TLS, replies, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(reply)
        await writer.drain()
        if is_reset:
            # Zero seconds of linger: the system sends RST.
            linger = struct.pack("ii", 1, 0)
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


#: The header of a record of TLS 1.2's handshake, which promises more than it holds.
HALF_A_RECORD = b"\x16\x03\x03\x00\x50\x02\x00"
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"

ENDS = {
    "closed": (b"", False),
    "reset": (b"", True),
    "closed within a record": (HALF_A_RECORD, False),
    "reset within a record": (HALF_A_RECORD, True),
    "plain HTTP": (answer(), False),
    "alert": (ALERT, False),
}


async def handshake_that_ends(how: str) -> None:
    reply, is_reset = ENDS[how]
    async with raw_server(reply, is_reset=is_reset) as port:
        cause = await refusal(None, port)
    assert isinstance(cause, OSError)
    if how in {"plain HTTP", "alert"}:
        assert isinstance(cause, ssl.SSLError)


@pytest.mark.parametrize("how", ENDS)
async def test_a_handshake_that_ends_is_no_connection(how: str) -> None:
    await handshake_that_ends(how)


async def test_tls_works_under_uvloop(known: Path, tmp_path: Path, on_uvloop: OnUvloop) -> None:
    other = write_certificate(tmp_path / "other.pem", "other.test")

    async def scenario() -> None:
        await trusted(known)
        for how in ENDS:
            await handshake_that_ends(how)
        async with canary(server_context(other)) as server:
            assert isinstance(await refusal(other, server.port), ssl.SSLCertVerificationError)

    await on_uvloop(scenario())


async def test_a_server_that_never_shakes_hands_is_no_connection_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with client(None) as http:
            with pytest.raises(NoConnectionInTime) as late:
                await get(http, silent.getsockname()[1], timeout_s=0.2)

    assert not late.value.sent


async def test_a_response_over_tls_that_is_cut_is_in_doubt(known: Path) -> None:
    whole = answer(b"four")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole[: cuts.pop(0)])
        await writer.drain()
        if len(cuts) % 2:
            writer.close()
        else:
            # Without TLS's goodbye.
            writer.transport.abort()

    cuts = [0, 0, 10, 10, len(whole) - 1, len(whole) - 1]
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_context(known))
    async with server, client(known) as http:
        while cuts:
            with pytest.raises(ConnectionLost) as lost:
                await get(http, server.sockets[0].getsockname()[1])
            assert lost.value.sent


@pytest.mark.parametrize("says_goodbye", [True, False])
async def test_a_close_that_arrived_while_nothing_was_read_is_seen_over_tls_too(
    known: Path, says_goodbye: bool, monkeypatch: pytest.MonkeyPatch, on_uvloop: OnUvloop
) -> None:
    monkeypatch.setattr(pool, "SURELY_OPEN_S", 0.0)

    async def scenario() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.settimeout(SOON_S)
        close, closed = threading.Event(), threading.Event()
        context = server_context(known)

        def serve() -> None:
            with listening:
                first = context.wrap_socket(listening.accept()[0], server_side=True)
                first.recv(65536)
                first.sendall(answer(b"first"))
                close.wait(SOON_S)
                if says_goodbye:
                    # Writes the alert, and waits for none.
                    first.settimeout(0)
                    with suppress(ssl.SSLWantReadError):
                        first.unwrap()
                first.close()
                closed.set()
                second = context.wrap_socket(listening.accept()[0], server_side=True)
                second.recv(65536)
                second.sendall(answer(b"second"))
                second.close()

        thread = threading.Thread(target=serve)
        thread.start()
        async with client(known) as http:
            port = listening.getsockname()[1]
            assert (await get(http, port)).body == b"first"
            close.set()
            # The loop stands still, as under load, while the server closes.
            closed.wait(SOON_S)
            assert (await get(http, port)).body == b"second"
        await asyncio.to_thread(thread.join)

    await scenario()
    await on_uvloop(scenario())


def test_what_is_trusted_is_read_once(known: Path) -> None:
    assert trust() is trust()
    assert trust(str(known)) is trust(str(known))
    assert trust(str(known)) is not trust()
