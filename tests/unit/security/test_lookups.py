"""Names that are looked up slowly, and those beside them."""

import asyncio
import socket
from collections.abc import Iterator
from threading import Event

import pytest

from msgsvc_core.security import lookups
from msgsvc_core.security.lookups import Found, Lookups

pytestmark = pytest.mark.timeout(20)

ANSWER: Found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]


class NameServer:
    """Answers at once, but for names under `slow...`: these when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = Event()

    def ask(self, host: str, _port: int, _family: socket.AddressFamily) -> Found:
        self.asked.append(host)
        if "slow" in host:
            assert self.go_on.wait(10)
        if host.startswith("missing"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return ANSWER


@pytest.fixture
def server() -> Iterator[NameServer]:
    made = NameServer()
    yield made
    made.go_on.set()


@pytest.fixture
def names(server: NameServer) -> Lookups:
    return Lookups(server.ask)


async def find(names: Lookups, host: str) -> Found:
    return await names.find(host, 443, socket.AF_INET)


async def begun(names: Lookups, *hosts: str) -> "list[asyncio.Task[Found]]":
    """Lookups that are under way, or wait for others."""
    tasks = [asyncio.create_task(find(names, host)) for host in hosts]
    await asyncio.sleep(0)
    return tasks


async def test_a_hundred_slow_names_of_a_domain_hold_nobody_else_up(
    names: Lookups, server: NameServer
) -> None:
    slow = await begun(names, *(f"x{number}.slow.example" for number in range(100)))

    assert await find(names, "hooks.shop.example.org") == ANSWER
    assert sum("slow" in host for host in server.asked) == lookups.MOST_OF_DOMAIN
    server.go_on.set()
    assert await asyncio.gather(*slow) == [ANSWER] * 100
    assert len(server.asked) == 101


async def test_where_too_many_domains_are_slow_one_more_name_fails_at_once(
    names: Lookups, server: NameServer
) -> None:
    slow = await begun(names, *(f"slow{number}.example" for number in range(lookups.MOST // 2)))
    slow += await begun(names, *(f"a.slow{number}.test" for number in range(lookups.MOST // 2)))

    with pytest.raises(OSError, match="too many names"):
        await find(names, "hooks.shop.example.org")

    server.go_on.set()
    await asyncio.gather(*slow)
    assert await find(names, "hooks.shop.example.org") == ANSWER


async def test_who_asks_for_a_name_that_is_looked_up_waits_for_that_answer(
    names: Lookups, server: NameServer
) -> None:
    tasks = await begun(names, *["slow.example"] * 5)
    tasks[0].cancel()
    server.go_on.set()

    assert await asyncio.gather(*tasks[1:]) == [ANSWER] * 4
    assert server.asked == ["slow.example"]


@pytest.mark.parametrize("host", ["missing.example", "a" * 64 + ".example"])
async def test_a_name_that_is_none_fails(host: str) -> None:
    ask = NameServer().ask if host.startswith("missing") else lookups.ask_system

    with pytest.raises(OSError, match=r"not known|no name of a host"):
        await find(Lookups(ask), host)
