"""Calls through a proxy: whole URLs to http servers, tunnels to https servers, and refusals of every kind."""

import asyncio
import base64
import ssl
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from msgsvc_core.http_client import (
    Connector,
    HttpClient,
    NameNotResolved,
    NoConnectionInTime,
    NotConnected,
    Proxy,
    Response,
)
from msgsvc_devkit.certificates import server_context, write_certificate
from tests.faults.scripted_server import CALL_S
from tests.http_client.conftest import OnUvloop
from tests.http_client.servers import canary

#: The server behind the proxy, which only the proxy can find.
SHOP = "shop.test"

PASSWORD = "s3cret:/@ж"
LOGIN = "us%40er:s3cret%3A%2F%40%D0%B6@"
AUTHORIZATION = "Basic " + base64.b64encode(f"us@er:{PASSWORD}".encode()).decode()

AGREED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass
class RealProxy:
    """A proxy that connects every name to loopback; or answers with `refuses`, and closes."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    agrees: list[bytes] = field(default_factory=lambda: [AGREED])
    refuses: list[bytes] | None = None
    is_silent: bool = False
    connections: int = 0
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["RealProxy"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
            for writer in self._writers:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            await self._play(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self.is_silent:
            await reader.read()
            return
        if self.refuses is not None:
            await _write(writer, self.refuses)
            return
        method, target, _ = head.split(b" ", 2)
        address = target if method == b"CONNECT" else target.split(b"/")[2]
        there = await asyncio.open_connection("127.0.0.1", int(address.rsplit(b":", 1)[1]))
        if method == b"CONNECT":
            await _write(writer, self.agrees)
        else:
            there[1].write(head)
        await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))


async def _write(writer: asyncio.StreamWriter, pieces: list[bytes]) -> None:
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        # For the client to read it alone.
        await asyncio.sleep(0)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def client(proxy_url: str, ca_file: Path | None = None) -> AsyncIterator[HttpClient]:
    proxy = Proxy.from_url(proxy_url)
    connector = Connector(proxy=proxy, ca_file=str(ca_file) if ca_file else None)
    http = HttpClient(connector)
    try:
        yield http
    finally:
        await http.close()


async def get(http: HttpClient, url: str, timeout_s: float = CALL_S) -> Response:
    return await http.request("GET", url, timeout_s=timeout_s)


@pytest.fixture(scope="module")
def shop_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls") / "shop.pem", SHOP)


async def through_http(login: str) -> tuple[list[bytes], list[bytes]]:
    """What the proxy and the server got of a call to an http server."""
    async with RealProxy().running() as proxy, canary() as shop:
        async with client(f"http://{login}127.0.0.1:{proxy.port}") as http:
            response = await get(http, f"http://{SHOP}:{shop.port}/path?q=1")
        assert (response.status, response.body) == (200, b"ok")
        expected = (
            f"GET http://{SHOP}:{shop.port}/path?q=1 HTTP/1.1\r\nHost: {SHOP}:{shop.port}\r\n"
        )
        assert proxy.heads[0].startswith(expected.encode())
    return proxy.heads, shop.requests


async def test_a_request_to_an_http_server_names_the_whole_url_and_the_host() -> None:
    heads, requests = await through_http("")

    assert len(heads) == len(requests) == 1
    assert b"proxy-authorization" not in heads[0].lower()


async def test_the_login_of_the_proxys_url_is_decoded_and_sent() -> None:
    heads, _ = await through_http(LOGIN)

    assert f"\r\nProxy-Authorization: {AUTHORIZATION}\r\n".encode() in heads[0]


@pytest.mark.parametrize(
    ("login", "sent"), [("user@", "user:"), ("user:@", "user:"), ("u%25:%00@", "u%:\0")]
)
async def test_a_login_of_any_kind_is_sent_as_it_is_meant(login: str, sent: str) -> None:
    proxy = Proxy.from_url(f"http://{login}127.0.0.1:3128")

    assert proxy.headers == (
        ("Proxy-Authorization", "Basic " + base64.b64encode(sent.encode()).decode()),
    )


async def through_tunnel(
    shop_certificate: Path, proxy_certificate: Path | None = None, pieces: list[bytes] | None = None
) -> None:
    """Two calls to an https server, by one tunnel; the proxy gets nothing but CONNECT."""
    scheme, tls, ca_file = "http", None, shop_certificate
    if proxy_certificate is not None:
        scheme, tls = "https", server_context(proxy_certificate)
        ca_file = both_of(shop_certificate, proxy_certificate)
    async with (
        RealProxy(agrees=pieces or [AGREED]).running(tls) as proxy,
        canary(server_context(shop_certificate), is_kept=True) as shop,
        client(f"{scheme}://{LOGIN}localhost:{proxy.port}", ca_file) as http,
    ):
        for _ in range(2):
            assert (await get(http, f"https://{SHOP}:{shop.port}/path")).body == b"ok"

        assert proxy.heads == [
            f"CONNECT {SHOP}:{shop.port} HTTP/1.1\r\nHost: {SHOP}:{shop.port}\r\n"
            f"Proxy-Authorization: {AUTHORIZATION}\r\n\r\n".encode()
        ]
        assert shop.names == [SHOP]
        assert shop.connections == 1
        assert shop.requests[0].startswith(b"GET /path HTTP/1.1\r\n")
        assert b"proxy-authorization" not in shop.requests[0].lower()


def both_of(shop_certificate: Path, proxy_certificate: Path) -> Path:
    """A file with both certificates. What is trusted by a path is read once, so each has its own."""
    both = proxy_certificate.with_name("both.pem")
    both.write_bytes(shop_certificate.read_bytes() + proxy_certificate.read_bytes())
    return both


async def test_an_https_server_is_called_through_a_tunnel(shop_certificate: Path) -> None:
    await through_tunnel(shop_certificate)


async def test_the_proxys_consent_may_come_in_pieces(shop_certificate: Path) -> None:
    await through_tunnel(shop_certificate, pieces=[bytes([byte]) for byte in AGREED])


async def test_a_proxy_may_speak_tls_too(shop_certificate: Path, tmp_path: Path) -> None:
    await through_tunnel(shop_certificate, write_certificate(tmp_path / "proxy.pem", "localhost"))


async def test_tunnels_work_under_uvloop(
    shop_certificate: Path, tmp_path: Path, on_uvloop: OnUvloop
) -> None:
    made = write_certificate(tmp_path / "proxy.pem", "localhost")

    async def scenario() -> None:
        await through_tunnel(shop_certificate)
        await through_tunnel(shop_certificate, made)
        await through_http(LOGIN)

    await on_uvloop(scenario())


async def test_the_server_in_a_tunnel_must_have_its_own_certificate(tmp_path: Path) -> None:
    other = write_certificate(tmp_path / "other.pem", "other.test")
    async with (
        RealProxy().running() as proxy,
        canary(server_context(other)) as shop,
        client(f"http://127.0.0.1:{proxy.port}", other) as http,
    ):
        with pytest.raises(NotConnected) as refused:
            await get(http, f"https://{SHOP}:{shop.port}/")

    assert isinstance(refused.value.cause, ssl.SSLCertVerificationError)
    assert not refused.value.sent
    assert shop.requests == []


async def test_a_proxy_with_another_certificate_gets_no_login(
    shop_certificate: Path, tmp_path: Path
) -> None:
    made = write_certificate(tmp_path / "proxy.pem", "localhost")
    async with (
        RealProxy().running(server_context(made)) as proxy,
        client(f"https://{LOGIN}localhost:{proxy.port}", shop_certificate) as http,
    ):
        for url in (f"https://{SHOP}/", f"http://{SHOP}/"):
            with pytest.raises(NotConnected) as refused:
                await get(http, url)
            assert isinstance(refused.value.cause, ssl.SSLCertVerificationError)

    assert proxy.heads == []


async def test_an_ipv6_address_is_in_brackets_in_connect() -> None:
    async with (
        RealProxy(refuses=[b"HTTP/1.1 403 No\r\n\r\n"]).running() as proxy,
        client(f"http://127.0.0.1:{proxy.port}") as http,
    ):
        for url in ("https://[2001:db8::1]/", "https://[2001:DB8:0::1]:8443/"):
            with pytest.raises(NotConnected):
                await get(http, url)

    assert [head.split(b"\r\n")[:2] for head in proxy.heads] == [
        [b"CONNECT [2001:db8::1]:443 HTTP/1.1", b"Host: [2001:db8::1]:443"],
        [b"CONNECT [2001:db8::1]:8443 HTTP/1.1", b"Host: [2001:db8::1]:8443"],
    ]


REFUSALS = {
    "wants another login": [b"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic\r\n\r\n"],
    "forbids": [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"],
    "redirects": [b"HTTP/1.1 302 Found\r\nLocation: https://other.test/\r\n\r\n"],
    "speaks another protocol": [b"SSH-2.0-OpenSSH_9.2\r\n\r\n"],
    "speaks HTTP/2": [b"HTTP/2 200\r\n\r\n"],
    "has a status of too many digits": [b"HTTP/1.1 2000 OK\r\n\r\n"],
    "has no status": [b"HTTP/1.1\r\n\r\n"],
    "says more at once": [AGREED + b"x"],
    "says more later": [AGREED, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"],
    "answers without an end": [b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 10_000],
    "closes": [],
    "closes after half of its answer": [AGREED[:-1]],
    "closes after its answer": [AGREED],
}


async def refused_by_proxy(refuses: list[bytes]) -> None:
    async with (
        RealProxy(refuses=refuses).running() as proxy,
        client(f"http://{LOGIN}127.0.0.1:{proxy.port}") as http,
    ):
        with pytest.raises(NotConnected) as refused:
            await get(http, f"https://{SHOP}/")
        error = refused.value

        assert not isinstance(error, NameNotResolved)
        assert not error.sent
        assert (error.host, error.port) == ("127.0.0.1", proxy.port)
        assert isinstance(error.cause, OSError)
        assert_no_password("".join(traceback.format_exception(error)), repr(error.cause))
        assert proxy.connections == 1


def assert_no_password(*texts: str) -> None:
    for text in texts:
        assert "s3cret" not in text
        assert AUTHORIZATION.split()[1] not in text


@pytest.mark.parametrize("how", REFUSALS)
async def test_a_proxy_that_refuses_is_no_connection(how: str) -> None:
    await refused_by_proxy(REFUSALS[how])


async def test_it_is_none_under_uvloop_too(on_uvloop: OnUvloop) -> None:
    async def scenario() -> None:
        for refuses in REFUSALS.values():
            await refused_by_proxy(refuses)

    await on_uvloop(scenario())


async def test_a_proxy_that_never_answers_is_no_connection_in_time() -> None:
    async with (
        RealProxy(is_silent=True).running() as proxy,
        client(f"http://{LOGIN}127.0.0.1:{proxy.port}") as http,
    ):
        with pytest.raises(NoConnectionInTime) as late:
            await get(http, f"https://{SHOP}/", timeout_s=1.0)

    assert not late.value.sent
    assert len(proxy.heads) == 1
    assert_no_password("".join(traceback.format_exception(late.value)))


async def test_a_proxy_that_is_away_is_no_connection() -> None:
    async with RealProxy().running() as proxy:
        url = f"http://{LOGIN}127.0.0.1:{proxy.port}"
    async with client(url) as http:
        for target in (f"https://{SHOP}/", f"http://{SHOP}/"):
            with pytest.raises(NotConnected) as refused:
                await get(http, target)

            assert not refused.value.sent
            assert isinstance(refused.value.cause, ConnectionRefusedError)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:s3cret/@proxy.test:3128",
        "http://user:s3cret@",
        "http://user:s3cret@proxy.test:s3cret",
        "http://user:s3cret@proxy.test:0",
        "http://user:s3cret@[::1:3128",
        "socks5://user:s3cret@proxy.test:1080",
        "proxy.test:3128",
        "",
    ],
)
def test_a_url_that_is_no_proxys_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - of the parser or of ours
        Proxy.from_url(url)

    assert_no_password("".join(traceback.format_exception_only(refused.value)))


def test_a_proxy_is_shown_without_its_login() -> None:
    assert_no_password(repr(Proxy.from_url(f"http://{LOGIN}proxy.test:3128")))
