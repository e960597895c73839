"""Names that are looked up slowly, and those beside them."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from msgsvc_core.security import dns
from msgsvc_core.security.dns import Found, HostClass, HostResolver, domain_of

pytestmark = pytest.mark.timeout(60)

ANSWER: Found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]

#: Of a hundred domains, so many that all places of new names are taken.
MANY = [f"a{number}.slow{domain}.example" for domain in range(100) for number in range(4)]

#: Seconds that a hurried caller waits for a name.
HASTE_S = 0.3

GOOD = "hooks.shop.example.org"


class NameServer:
    """Answers at once, but for names with `slow` in them: these when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()

    def ask(self, host: str, _port: int, _family: socket.AddressFamily) -> Found:
        self.asked.append(host)
        if "slow" in host:
            assert self.go_on.wait(10)
        if host.startswith("missing"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return ANSWER

    @property
    def slow(self) -> int:
        return sum("slow" in host for host in self.asked)


class Time:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def server() -> Iterator[NameServer]:
    made = NameServer()
    yield made
    made.go_on.set()


@pytest.fixture
def names(server: NameServer) -> HostResolver:
    return HostResolver(server.ask)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def hasty(server: NameServer, time: Time) -> HostResolver:
    """Waits for next to nothing."""
    return HostResolver(server.ask, patience_s=HASTE_S, now=time)


async def find(names: HostResolver, host: str, port: int = 443) -> Found:
    return await names.resolve(host, port, socket.AF_INET)


async def begun(names: HostResolver, *hosts: str) -> "list[asyncio.Task[Found]]":
    """Lookups that are under way, or wait for others, or were refused at once."""
    tasks = [asyncio.create_task(find(names, host)) for host in hosts]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def threads_end() -> None:
    """Returns when all lookups have ended, and what they found has been heard."""
    for thread in threading.enumerate():
        if thread.name == "name lookup":
            await asyncio.to_thread(thread.join)
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_hundred_slow_names_of_a_domain_hold_nobody_else_up(
    names: HostResolver, server: NameServer
) -> None:
    slow = await begun(names, *(f"x{number}.slow.example" for number in range(100)))

    assert await find(names, GOOD) == ANSWER
    assert server.slow == dns.MOST_OF_DOMAIN
    server.go_on.set()
    assert await asyncio.gather(*slow) == [ANSWER] * 100
    assert len(server.asked) == 101


async def test_slow_names_of_a_hundred_domains_hold_up_no_name_that_was_answered_before(
    names: HostResolver, server: NameServer
) -> None:
    await find(names, GOOD)
    slow = await begun(names, *MANY)

    assert await find(names, GOOD) == ANSWER
    assert server.slow == dns.PLACES[HostClass.NEW]
    server.go_on.set()
    await asyncio.gather(*slow)


async def test_a_new_name_beside_a_hundred_slow_domains_waits_for_a_place(
    names: HostResolver, server: NameServer
) -> None:
    slow = await begun(names, *MANY)
    (new,) = await begun(names, "hooks.new.example.org")

    assert not new.done()
    server.go_on.set()
    assert await new == ANSWER
    await asyncio.gather(*slow)


async def test_domains_that_are_slow_take_no_more_places_of_new_names(server: NameServer) -> None:
    names = HostResolver(server.ask, quick_s=0.01)
    slow = await begun(names, *(f"slow{domain}.example" for domain in range(8)))
    await asyncio.sleep(0.05)  # by the loop's own clock, on which what is slow is noted before
    slow += await begun(
        names, *(f"a{number}.slow{domain}.example" for domain in range(8) for number in range(3))
    )

    assert await find(names, GOOD) == ANSWER
    assert server.slow == 8 + dns.PLACES[HostClass.SLOW]
    server.go_on.set()
    await asyncio.gather(*slow)


async def test_healthy_names_in_numbers_wait_for_places_and_are_all_answered(
    names: HostResolver,
) -> None:
    tasks = await begun(names, *(f"hooks.shop{number}.example" for number in range(300)))

    assert await asyncio.gather(*tasks) == [ANSWER] * 300


async def test_a_name_that_timed_out_is_refused_at_once_for_a_while(
    hasty: HostResolver, server: NameServer, time: Time
) -> None:
    with pytest.raises(socket.gaierror) as refused:
        await find(hasty, "missing.slow.example")
    assert refused.value.errno == socket.EAI_AGAIN

    time.s += dns.PATIENCE_S
    (while_it_is_asked,) = await begun(hasty, "missing.slow.example")
    assert isinstance(while_it_is_asked.exception(), socket.gaierror)
    server.go_on.set()
    await threads_end()
    (afterwards,) = await begun(hasty, "missing.slow.example")
    assert isinstance(afterwards.exception(), socket.gaierror)
    assert len(server.asked) == 1

    time.s += dns.GIVEN_UP_S
    with pytest.raises(socket.gaierror, match="not known"):
        await find(hasty, "missing.slow.example")
    assert len(server.asked) == 2


async def test_a_name_that_was_answered_late_is_asked_again(
    hasty: HostResolver, server: NameServer, time: Time
) -> None:
    with pytest.raises(socket.gaierror):
        await find(hasty, "slow.example")
    time.s += dns.PATIENCE_S
    server.go_on.set()
    await threads_end()

    (again,) = await begun(hasty, "slow.example")
    assert await again == ANSWER


async def test_a_name_that_nobody_waits_for_any_more_is_not_asked(
    hasty: HostResolver, server: NameServer
) -> None:
    tasks = await begun(hasty, *(f"a{number}.slow.example" for number in range(20)))
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(HASTE_S)  # a lookup waits as long as who asked, and begins a moment later
    server.go_on.set()
    await threads_end()

    assert all(isinstance(error, socket.gaierror) for error in ended)
    assert len(server.asked) == dns.MOST_OF_DOMAIN


async def test_who_asks_for_a_name_that_is_looked_up_waits_for_that_answer(
    names: HostResolver, server: NameServer
) -> None:
    tasks = await begun(names, *["slow.example"] * 5)
    tasks.append(asyncio.create_task(find(names, "slow.example", 8443)))
    tasks[0].cancel()
    await asyncio.sleep(0)
    server.go_on.set()

    assert await asyncio.gather(*tasks[1:]) == [ANSWER] * 5
    assert server.asked == ["slow.example"]


@pytest.mark.parametrize("host", ["missing.example", "a" * 64 + ".example"])
async def test_a_name_that_is_none_fails(host: str) -> None:
    ask = NameServer().ask if host.startswith("missing") else dns.query_system

    with pytest.raises(OSError, match=r"not known|no name of a host"):
        await find(HostResolver(ask), host)


async def test_a_machine_without_threads_fails_the_lookup_and_not_the_next(
    names: HostResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted, pytest.raises(socket.gaierror):
        exhausted.setattr(threading.Thread, "start", start)
        await find(names, GOOD)

    assert await find(names, GOOD) == ANSWER


async def test_who_waits_when_all_is_closed_is_told_so(names: HostResolver) -> None:
    waiting = await begun(names, *(f"a{number}.slow.example" for number in range(10)))
    begins = asyncio.create_task(find(names, "b.slow.example"))
    await asyncio.sleep(0)

    await names.close()

    ended = await asyncio.gather(*waiting, begins, return_exceptions=True)
    assert all(isinstance(error, socket.gaierror) for error in ended)


def test_a_process_ends_although_a_name_server_does_not_answer() -> None:
    program = """
import asyncio, time
from msgsvc_core.security.dns import HostResolver

async def main():
    names = HostResolver(lambda *_: time.sleep(60), patience_s=0.05)
    try:
        await names.resolve("slow.example", 443, 0)
    except OSError:
        print("given up")

asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=45, check=False
    )

    assert (ended.stdout, ended.stderr, ended.returncode) == ("given up\n", "", 0)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.shop.example", "shop.example"),
        ("Shop.Example.", "shop.example"),
        ("a.shop.co.uk", "shop.co.uk"),
        ("shop.co.uk", "shop.co.uk"),
        ("a.shop.com.ru", "shop.com.ru"),
        ("co.uk", "co.uk"),
        ("a.b.co.example", "co.example"),
        ("localhost", "localhost"),
    ],
)
def test_names_of_one_owner_are_one_domain(host: str, domain: str) -> None:
    assert domain_of(host) == domain
