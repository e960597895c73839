"""A real aiohttp client and a canary server that must not be reached."""

import asyncio
import errno
import socket
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from msgsvc_core.security import dns
from msgsvc_core.security.connector import GuardedConnector, GuardedResolver
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard


@dataclass
class Canary:
    port: int
    connections: int = 0


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bird.connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    bird = Canary(port=server.sockets[0].getsockname()[1])
    async with server:
        yield bird


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every name leads to loopback; these were looked up."""
    hosts: list[str] = []

    def ask(host: str, port: int, _family: socket.AddressFamily) -> dns.Found:
        hosts.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(dns, "query_system", ask)
    return hosts


async def get(guard: OutboundGuard, url: str, **options) -> int:
    async with (
        aiohttp.ClientSession(connector=GuardedConnector(guard)) as session,
        session.get(url, **options) as response,
    ):
        return response.status


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "localhost"],
)
async def test_loopback_in_the_url_is_never_connected_to(canary: Canary, host: str):
    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        await get(OutboundGuard(allow_http=True), f"http://{host}:{canary.port}/")

    assert isinstance(refused.value.os_error, ForbiddenTarget)
    assert canary.connections == 0


async def test_name_that_leads_to_loopback_is_never_connected_to(canary: Canary, answer_dns):
    answer_dns("127.0.0.1")

    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        await get(OutboundGuard(allow_http=True), f"http://hooks.example.com:{canary.port}/")

    assert isinstance(refused.value.os_error, ForbiddenTarget)
    assert refused.value.errno == errno.EACCES
    assert canary.connections == 0


async def test_name_with_a_public_address_beside_loopback_is_never_connected_to(
    canary: Canary, answer_dns
):
    answer_dns("8.8.8.8", "127.0.0.1")

    with pytest.raises(aiohttp.ClientConnectorError):
        await get(OutboundGuard(allow_http=True), f"http://hooks.example.com:{canary.port}/")

    assert canary.connections == 0


async def test_name_that_moves_to_loopback_after_its_check_gains_nothing(
    canary: Canary, answer_dns
):
    guard = OutboundGuard(allow_http=True)
    url = f"http://hooks.example.com:{canary.port}/"
    answer_dns("8.8.8.8")
    guard.check_url(url)
    assert await GuardedResolver(guard).resolve("hooks.example.com")
    answer_dns("127.0.0.1")

    with pytest.raises(aiohttp.ClientConnectorError):
        await get(guard, url)

    assert canary.connections == 0


async def test_address_is_looked_at_again_where_the_socket_opens(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
):
    # aiohttp asks no resolver about a literal address, so here only the socket's check is left.
    guard = OutboundGuard(allow_http=True)
    monkeypatch.setattr(guard, "check_url", lambda url: None)

    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        await get(guard, f"http://127.0.0.1:{canary.port}/")

    assert isinstance(refused.value.os_error, ForbiddenTarget)
    assert canary.connections == 0


async def test_redirect_to_a_forbidden_address_is_not_followed(canary: Canary):
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        target = f"http://127.0.0.1:{canary.port}/".encode()
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + target + b"\r\n")
        writer.write(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(redirect, "127.0.0.2", 0) as server:
        port = server.sockets[0].getsockname()[1]
        guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.2/32"])
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(guard, f"http://127.0.0.2:{port}/")

    assert canary.connections == 0


async def test_proxy_is_refused(canary: Canary):
    guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.0/8"])

    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        await get(guard, "http://example.com/", proxy=f"http://127.0.0.1:{canary.port}")

    assert "proxy" in str(refused.value.os_error)
    assert canary.connections == 0


async def test_opened_range_is_reached_by_address_and_by_name(canary: Canary, answer_dns):
    guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.0/8"])
    answer_dns("127.0.0.1")

    statuses = [
        await get(guard, f"http://{host}:{canary.port}/")
        for host in ("127.0.0.1", "localhost", "hooks.example.com")
    ]

    assert statuses == [200, 200, 200]
    assert canary.connections == 3


async def test_remembered_address_is_looked_at_again_by_the_guard(
    canary: Canary, asked: list[str], monkeypatch: pytest.MonkeyPatch
):
    guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.0/8"])
    url = f"http://hooks.example.com:{canary.port}/"
    async with aiohttp.ClientSession(connector=GuardedConnector(guard)) as session:
        for _ in range(2):  # the canary closes each connection
            async with session.get(url) as response:
                assert response.status == 200
        monkeypatch.setattr(guard, "is_allowed", lambda address: False)
        with pytest.raises(aiohttp.ClientConnectorError) as refused:
            await session.get(url)

    assert isinstance(refused.value.os_error, ForbiddenTarget)
    assert asked == ["hooks.example.com"]
    assert canary.connections == 2


async def test_names_of_tenants_are_not_looked_up_in_the_loops_threads(
    canary: Canary, asked: list[str], monkeypatch: pytest.MonkeyPatch
):
    # Under uvloop there are two for all lookups of the process, and those of the messengers need them.
    async def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("the loop was asked")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", refuse)
    guard = OutboundGuard(allow_http=True, allow_cidrs=["127.0.0.0/8"])

    assert await get(guard, f"http://hooks.example.com:{canary.port}/") == 200
    assert asked == ["hooks.example.com"]


async def test_lookups_end_with_the_connector(monkeypatch: pytest.MonkeyPatch):
    begun, go_on = threading.Event(), threading.Event()

    def ask(_host: str, _port: int, _family: socket.AddressFamily) -> dns.Found:
        begun.set()
        go_on.wait(10)
        return []

    monkeypatch.setattr(dns, "query_system", ask)
    others = asyncio.all_tasks()
    session = aiohttp.ClientSession(connector=GuardedConnector(OutboundGuard()))
    resolver = asyncio.create_task(session.get("https://hooks.example.com/"))
    await asyncio.to_thread(begun.wait, 10)
    before = asyncio.all_tasks() - others

    await session.close()

    going_on = {task for task in before if not task.done()}
    go_on.set()
    assert going_on <= {resolver}
    with pytest.raises((aiohttp.ClientError, asyncio.CancelledError)):
        await resolver
