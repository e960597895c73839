"""Connections that the outbound guard watches: a server on loopback must not be reached, by whatever name."""

import asyncio
import errno
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from msgsvc_core.http_client import (
    Connector,
    HttpClient,
    NameNotResolved,
    NotConnected,
    Proxy,
    Response,
    connecting,
)
from msgsvc_core.security import dns
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard
from msgsvc_devkit.certificates import server_context, write_certificate
from tests.faults.scripted_server import CALL_S
from tests.http_client.conftest import OnUvloop
from tests.http_client.servers import SOON_S, Canary, canary

AnswerDns = Callable[..., None]

#: Of a server on this machine, which only these tests may call.
OPENED = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.0/8"])


@pytest.fixture
async def bird() -> AsyncIterator[Canary]:
    async with canary() as running:
        yield running


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every name leads to loopback; these were looked up."""
    hosts: list[str] = []

    def ask(host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        hosts.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(dns, "query_system", ask)
    return hosts


async def get(connector: Connector, url: str) -> Response:
    """One call by a client of its own."""
    http = HttpClient(connector)
    try:
        return await http.request("GET", url, timeout_s=CALL_S)
    finally:
        await http.close()


async def refusal(guard: OutboundGuard, url: str) -> NotConnected:
    """Why a call has no connection."""
    with pytest.raises(NotConnected) as refused:
        await get(Connector(guard=guard), url)
    assert not refused.value.sent
    return refused.value


LOOPBACK = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "127.255.255.254",
    "0.0.0.0",  # noqa: S104 - nothing is bound
    "0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "localhost",
    "LOCALHOST",
]


@pytest.mark.parametrize("host", LOOPBACK)
async def test_loopback_in_the_url_is_never_connected_to(bird: Canary, host: str) -> None:
    refused = await refusal(OutboundGuard(allow_http=True), f"http://{host}:{bird.port}/")

    assert isinstance(refused.cause, ForbiddenTarget)
    assert bird.connections == 0


async def test_loopback_is_refused_under_uvloop_too(bird: Canary, on_uvloop: OnUvloop) -> None:
    async def scenario() -> None:
        for host in LOOPBACK:
            refused = await refusal(OutboundGuard(), f"http://{host}:{bird.port}/")
            assert isinstance(refused.cause, ForbiddenTarget)
        response = await get(Connector(guard=OPENED), f"http://localhost:{bird.port}/")
        assert response.status == 200

    await on_uvloop(scenario())
    assert bird.connections == 1


async def test_name_that_leads_to_loopback_is_never_connected_to(
    bird: Canary, answer_dns: AnswerDns
) -> None:
    answer_dns("127.0.0.1")

    refused = await refusal(OutboundGuard(), f"http://hooks.example.com:{bird.port}/")

    assert isinstance(refused.cause, NoPublicHost)
    assert refused.cause.errno == errno.EACCES
    assert "127.0.0.1" not in f"{refused} {refused.cause}"
    assert bird.connections == 0


@pytest.mark.parametrize(
    "addresses", [("8.8.8.8", "127.0.0.1"), ("127.0.0.1", "8.8.8.8"), ("2001:4860::8", "::1")]
)
async def test_name_with_a_public_address_beside_loopback_is_never_connected_to(
    bird: Canary, answer_dns: AnswerDns, addresses: tuple[str, ...]
) -> None:
    answer_dns(*addresses)

    refused = await refusal(OutboundGuard(), f"http://hooks.example.com:{bird.port}/")

    assert isinstance(refused.cause, ForbiddenTarget)
    assert bird.connections == 0


async def test_name_that_moves_to_loopback_after_its_check_gains_nothing(
    bird: Canary, answer_dns: AnswerDns
) -> None:
    guard = OutboundGuard(allow_http=True)
    url = f"http://hooks.example.com:{bird.port}/"
    answer_dns("8.8.8.8")
    guard.check_url(url)
    names = connecting.GuardedNames(guard)
    assert await names.resolve("hooks.example.com", bird.port)
    await names.close()
    answer_dns("127.0.0.1")

    refused = await refusal(guard, url)

    assert isinstance(refused.cause, ForbiddenTarget)
    assert bird.connections == 0


async def test_a_connection_is_made_to_the_address_that_was_checked(bird: Canary) -> None:
    answers = iter(["127.0.0.1", "127.0.0.9"])

    def ask(_host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    connector = Connector(guard=OPENED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dns, "query_system", ask)
        response = await get(connector, f"http://hooks.example.com:{bird.port}/")

    assert response.status == 200
    # The resolver was asked once for the check and the connection together.
    assert next(answers) == "127.0.0.9"


async def test_address_is_checked_again_where_the_socket_opens(
    bird: Canary, answer_dns: AnswerDns
) -> None:
    class Distracted(OutboundGuard):
        """Allows any address once."""

        def __init__(self) -> None:
            super().__init__(allow_http=True)
            self.checked = 0

        def is_allowed(self, ip: object) -> bool:
            self.checked += 1
            return self.checked == 1

    guard = Distracted()
    answer_dns("127.0.0.1")

    refused = await refusal(guard, f"http://hooks.example.com:{bird.port}/")

    assert isinstance(refused.cause, ForbiddenTarget)
    assert guard.checked == 2
    assert bird.connections == 0


async def test_a_redirect_is_not_followed(bird: Canary) -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        target = f"http://127.0.0.1:{bird.port}/".encode()
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + target + b"\r\n")
        writer.write(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(redirect, "127.0.0.2", 0) as server:
        port = server.sockets[0].getsockname()[1]
        guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.2/32"])
        response = await get(Connector(guard=guard), f"http://127.0.0.2:{port}/")

    assert response.status == 302
    assert bird.connections == 0


def test_a_guard_goes_with_no_proxy() -> None:
    with pytest.raises(ValueError, match="proxy"):
        Connector(guard=OutboundGuard(), proxy=Proxy.from_url("http://127.0.0.1:3128"))


async def test_opened_range_is_reached_by_address_and_by_name(
    bird: Canary, answer_dns: AnswerDns
) -> None:
    answer_dns("127.0.0.1")

    responses = [
        await get(Connector(guard=OPENED), f"http://{host}:{bird.port}/")
        for host in ("127.0.0.1", "localhost", "hooks.example.com")
    ]

    assert [response.status for response in responses] == [200, 200, 200]
    assert bird.connections == 3


async def test_addresses_are_remembered_and_checked_again_by_the_guard(
    bird: Canary, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.0/8"])
    url = f"http://hooks.example.com:{bird.port}/"
    connector = Connector(guard=guard)
    for _ in range(2):
        assert (await get(connector, url)).status == 200
    monkeypatch.setattr(guard, "is_allowed", lambda address: False)
    with pytest.raises(NotConnected) as refused:
        await get(connector, url)

    assert isinstance(refused.value.cause, ForbiddenTarget)
    assert asked == ["hooks.example.com"]
    assert bird.connections == 2


async def test_addresses_are_looked_up_again_after_a_while(
    bird: Canary, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connecting.REMEMBERED_S == 10
    monkeypatch.setattr(connecting, "REMEMBERED_S", 0.0)
    connector = Connector(guard=OPENED)
    for _ in range(2):
        await get(connector, f"http://hooks.example.com:{bird.port}/")

    assert asked == ["hooks.example.com"] * 2


async def test_of_many_names_the_oldest_are_forgotten(
    bird: Canary, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "REMEMBERED_NAMES", 2)
    connector = Connector(guard=OPENED)
    for name in ("a", "b", "c", "b", "c", "a"):
        await get(connector, f"http://{name}.example.com:{bird.port}/")

    assert asked == [f"{name}.example.com" for name in ("a", "b", "c", "a")]


async def test_concurrent_lookups_of_a_name_are_one(bird: Canary, asked: list[str]) -> None:
    async with canary() as other:
        connector = Connector(guard=OPENED)
        ports = [bird.port, other.port] * 5
        await asyncio.gather(
            *[get_once(connector, f"http://hooks.example.com:{port}/") for port in ports]
        )

    assert asked == ["hooks.example.com"]
    # Each reached the port that it named.
    assert (bird.connections, other.connections) == (5, 5)


async def get_once(connector: Connector, url: str) -> Response:
    """Like `get`; the connector stays open for others."""
    http = HttpClient(connector)
    return await http.request("GET", url, timeout_s=CALL_S)


async def test_a_lookup_outlives_the_caller_that_began_it(
    bird: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    asked = []

    def ask(host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        asked.append(host)
        go_on.wait(SOON_S)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(dns, "query_system", ask)
    connector = Connector(guard=OPENED)
    url = f"http://hooks.example.com:{bird.port}/"
    first = asyncio.create_task(get_once(connector, url))
    second = asyncio.create_task(get_once(connector, url))
    for _ in range(10):
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go_on.set()

    assert (await second).status == 200
    assert asked == ["hooks.example.com"]


async def test_names_of_tenants_are_not_looked_up_in_the_loops_threads(
    bird: Canary, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Under uvloop there are two for all lookups of the process, and those of the messengers need them.
    async def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("the loop was asked")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", refuse)

    response = await get(Connector(guard=OPENED), f"http://hooks.example.com:{bird.port}/")

    assert response.status == 200
    assert asked == ["hooks.example.com"]


async def test_a_slow_name_keeps_nobody_else_waiting(
    bird: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def ask(host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        if host.startswith("slow"):
            go_on.wait(SOON_S)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(dns, "query_system", ask)
    connector = Connector(guard=OPENED)
    slow = [
        asyncio.create_task(get_once(connector, f"http://slow.example{number}.com:{bird.port}/"))
        for number in range(10)
    ]
    quick = await get_once(connector, f"http://quick.example.com:{bird.port}/")

    assert quick.status == 200
    assert not any(call.done() for call in slow)
    go_on.set()
    assert {response.status for response in await asyncio.gather(*slow)} == {200}


async def test_lookups_end_with_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def ask(_host: str, _port: int, _family: socket.AddressFamily) -> dns.Found:
        begun.set()
        go_on.wait(SOON_S)
        return []

    monkeypatch.setattr(dns, "query_system", ask)
    others = asyncio.all_tasks()
    http = HttpClient(Connector(guard=OutboundGuard()))
    call = asyncio.create_task(http.request("GET", "https://hooks.example.com/", timeout_s=CALL_S))
    await asyncio.to_thread(begun.wait, SOON_S)
    before = asyncio.all_tasks() - others

    await http.close()

    going_on = {task for task in before if not task.done()}
    go_on.set()
    assert going_on <= {call}
    with pytest.raises(NameNotResolved) as refused:
        await call
    assert not refused.value.sent


async def test_an_unknown_name_is_told_from_a_server_that_is_away(answer_dns: AnswerDns) -> None:
    answer_dns(socket.gaierror(socket.EAI_NONAME, "no such name"))

    refused = await refusal(OutboundGuard(), "https://hooks.example.com/")

    assert isinstance(refused, NameNotResolved)
    assert isinstance(refused.cause, socket.gaierror)
    assert (refused.host, refused.port) == ("hooks.example.com", 443)


@pytest.mark.parametrize("guard", [None, OutboundGuard()], ids=["free", "guarded"])
@pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "a..example.com"])
async def test_a_name_that_is_none_is_not_resolved(host: str, guard: OutboundGuard | None) -> None:
    with pytest.raises(NameNotResolved) as refused:
        await get(Connector(guard=guard), f"http://{host}/")

    assert not refused.value.sent


async def test_the_next_address_is_tried_if_one_refuses(
    bird: Canary, answer_dns: AnswerDns
) -> None:
    answer_dns("127.0.0.9", "127.0.0.1")

    response = await get(Connector(guard=OPENED), f"http://hooks.example.com:{bird.port}/")

    assert response.status == 200


async def test_tls_keeps_the_name_while_it_connects_to_the_checked_address(
    tmp_path: Path, asked: list[str], on_uvloop: OnUvloop
) -> None:
    made = write_certificate(tmp_path / "hooks.pem", "hooks.example.com")
    async with canary(server_context(made)) as bird:

        async def scenario() -> None:
            connector = Connector(guard=OPENED, ca_file=str(made))
            url = f"https://hooks.example.com:{bird.port}/"
            assert (await get(connector, url)).body == b"ok"
            # Of the same server, but not a name of its certificate.
            with pytest.raises(NotConnected):
                await get(connector, f"https://other.example.com:{bird.port}/")

        await scenario()
        await on_uvloop(scenario())

    assert bird.names == ["hooks.example.com", "other.example.com"] * 2
    assert len(bird.requests) == 2
    assert f"\r\nHost: hooks.example.com:{bird.port}\r\n".encode() in bird.requests[0]
    assert set(asked) == {"hooks.example.com", "other.example.com"}


async def test_the_roots_dot_is_no_part_of_the_name_in_tls(
    tmp_path: Path, asked: list[str]
) -> None:
    made = write_certificate(tmp_path / "hooks.pem", "hooks.example.com")
    async with canary(server_context(made)) as bird:
        connector = Connector(guard=OPENED, ca_file=str(made))
        response = await get(connector, f"https://hooks.example.com.:{bird.port}/")

    assert response.status == 200
    assert bird.names == ["hooks.example.com"]
    assert asked == ["hooks.example.com."]
