"""Connections are used again, never more of them than allowed, and no call keeps a place after its end."""

import asyncio
import random
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from msgsvc_core.http_client import (
    CallError,
    Connector,
    HttpClient,
    NoConnectionInTime,
    NotConnected,
    pool,
)
from msgsvc_devkit import until
from tests.faults.scripted_server import CALL_S, Script, ScriptedServer, answer, client
from tests.http_client.conftest import OnUvloop
from tests.http_client.servers import SOON_S


class Desk:
    """A server that answers requests when it is told to; what is asked stands in `paths`, in order."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.open = 0
        self.most_open = 0
        self.connections = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Desk"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
            self.go_on.set()

    async def is_asked(self, count: int) -> None:
        async def asked() -> bool:
            return len(self.paths) >= count

        await until(asked, timeout_s=SOON_S, interval_s=0.001)

    async def holds(self, count: int) -> None:
        """Waits until so many connections are open."""

        async def found() -> bool:
            return self.open == count

        await until(found, timeout_s=SOON_S, interval_s=0.001)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while head := await _head(reader):
                path = head.split(b" ")[1].decode()
                self.paths.append(path)
                await self.go_on.wait()
                close = b"Connection: close" if path == "/close" else b"X: y"
                writer.write(answer(b"ok", close))
                if path == "/close":
                    break
        finally:
            self.open -= 1
            writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


async def get(http: HttpClient, url: str, timeout_s: float = CALL_S) -> bytes:
    return (await http.request("GET", url, timeout_s=timeout_s)).body


async def turns(count: int = 10) -> None:
    """Lets every task go on to where it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_no_more_connections_are_open_than_allowed() -> None:
    async with Desk().running() as desk, client(3) as http:
        await asyncio.gather(*[get(http, f"{desk.url}/{number}") for number in range(40)])

    assert len(desk.paths) == 40
    assert desk.most_open == 3
    # Each is used again by those who waited.
    assert desk.connections == 3


async def test_calls_get_a_connection_in_the_order_in_which_they_asked() -> None:
    async with Desk().running() as desk, client(1) as http:
        desk.go_on.clear()
        calls = []
        for number in range(10):
            calls.append(asyncio.create_task(get(http, f"{desk.url}/{number}")))
            await turns()
        desk.go_on.set()
        await asyncio.gather(*calls)

    assert desk.paths == [f"/{number}" for number in range(10)]


async def test_a_task_that_calls_again_and_again_does_not_overtake_those_who_wait() -> None:
    async with Desk().running() as desk, client(1) as http:

        async def again_and_again() -> None:
            for _ in range(20):
                await get(http, f"{desk.url}/again")

        desk.go_on.clear()
        first = asyncio.create_task(again_and_again())
        await desk.is_asked(1)
        others = [asyncio.create_task(get(http, f"{desk.url}/{number}")) for number in range(3)]
        await turns()
        desk.go_on.set()
        await asyncio.gather(first, *others)

    assert desk.paths[:4] == ["/again", "/0", "/1", "/2"]
    assert desk.connections == 1


async def test_a_call_that_gives_up_waiting_keeps_no_place() -> None:
    async with Desk().running() as desk, client(1) as http:
        desk.go_on.clear()
        first = asyncio.create_task(get(http, f"{desk.url}/first"))
        await desk.is_asked(1)
        given_up = [asyncio.create_task(get(http, f"{desk.url}/no")) for _ in range(3)]
        last = asyncio.create_task(get(http, f"{desk.url}/last"))
        await turns()
        for call in given_up:
            call.cancel()
        desk.go_on.set()

        assert await first == await last == b"ok"
        for call in given_up:
            with pytest.raises(asyncio.CancelledError):
                await call
    assert desk.paths == ["/first", "/last"]


async def test_a_call_cancelled_as_it_gets_its_place_hands_it_on() -> None:
    async with Desk().running() as desk:
        places = pool.ConnectionPool(Connector(), 1)
        origin = ("http", "127.0.0.1", desk.port)
        held = await places.acquire(origin)
        given_up = asyncio.create_task(places.acquire(origin))
        last = asyncio.create_task(places.acquire(origin))
        await turns()

        # Between the two its task has not run.
        places.release(origin, held)
        given_up.cancel()
        async with asyncio.timeout(SOON_S):
            taken = await last

        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert taken is held
        places.release(origin, taken)
        places.close()


async def test_a_call_that_waits_too_long_for_a_connection_was_not_sent() -> None:
    async with Desk().running() as desk, client(1) as http:
        desk.go_on.clear()
        first = asyncio.create_task(get(http, f"{desk.url}/first"))
        await desk.is_asked(1)
        with pytest.raises(NoConnectionInTime) as late:
            await get(http, f"{desk.url}/late", timeout_s=0.1)
        desk.go_on.set()
        await first
        await get(http, f"{desk.url}/next")

    assert not late.value.sent
    assert desk.paths == ["/first", "/next"]


async def test_an_unused_connection_makes_room_for_a_call_elsewhere() -> None:
    async with Desk().running() as desk, Desk().running() as other, client(1) as http:
        await get(http, desk.url)
        await get(http, other.url)
        await desk.holds(0)
        await get(http, other.url)

        assert (desk.connections, other.connections, other.open) == (1, 1, 1)


async def test_below_the_limit_connections_to_several_servers_are_kept() -> None:
    async with Desk().running() as desk, Desk().running() as other, client(2) as http:
        for _ in range(3):
            await get(http, desk.url)
            await get(http, other.url)

        assert (desk.connections, other.connections) == (1, 1)


async def test_without_a_limit_every_call_has_a_connection_at_once() -> None:
    async with Desk().running() as desk, client(None) as http:
        desk.go_on.clear()
        calls = [asyncio.create_task(get(http, desk.url)) for _ in range(60)]
        await desk.is_asked(60)
        desk.go_on.set()
        await asyncio.gather(*calls)

    assert desk.most_open == 60


async def test_unused_connections_are_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "KEPT_S", 0.05)
    async with Desk().running() as desk, client() as http:
        await asyncio.gather(*[get(http, desk.url) for _ in range(5)])
        await desk.holds(0)
        await get(http, desk.url)

        assert desk.connections == 6


async def test_a_connection_that_was_used_since_stays_when_another_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Desk().running() as desk:
        places = pool.ConnectionPool(Connector(), None)
        origin = ("http", "127.0.0.1", desk.port)
        old, recent = await places.acquire(origin), await places.acquire(origin)
        monkeypatch.setattr(pool, "KEPT_S", 0.05)
        places.release(origin, old)
        places.release(origin, recent)
        # It looks after 0.05 s, and only one of them has been unused for so long by then.
        monkeypatch.setattr(pool, "KEPT_S", 1000.0)
        old.idle_since_s -= 1000.0
        await desk.holds(1)

        assert await places.acquire(origin) is recent
        places.release(origin, recent)
        places.close()


async def test_a_close_that_arrived_while_nothing_was_read_is_seen_before_the_connection_is_used(
    monkeypatch: pytest.MonkeyPatch, on_uvloop: OnUvloop
) -> None:
    monkeypatch.setattr(pool, "SURELY_OPEN_S", 0.0)

    async def scenario() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.settimeout(SOON_S)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        close, closed = threading.Event(), threading.Event()

        def serve() -> None:
            with listening, listening.accept()[0] as first:
                first.recv(65536)
                first.sendall(answer(b"first"))
                close.wait(SOON_S)
                first.close()
                closed.set()
                with listening.accept()[0] as second:
                    second.recv(65536)
                    second.sendall(answer(b"second"))

        thread = threading.Thread(target=serve)
        thread.start()
        async with client() as http:
            assert await get(http, url) == b"first"
            close.set()
            # The loop stands still, as under load, while the server closes.
            closed.wait(SOON_S)
            assert await get(http, url) == b"second"
        await asyncio.to_thread(thread.join)

    await scenario()
    await on_uvloop(scenario())


async def test_a_closed_client_keeps_no_connection() -> None:
    async with Desk().running() as desk:
        http = HttpClient(Connector())
        desk.go_on.clear()
        call = asyncio.create_task(get(http, desk.url))
        await desk.is_asked(1)
        await http.close()
        desk.go_on.set()

        assert await call == b"ok"
        await desk.holds(0)


async def test_a_client_is_closed_more_than_once_without_harm() -> None:
    async with Desk().running() as desk:
        http = HttpClient(Connector())
        await get(http, desk.url)
        await http.close()
        await http.close()

        await desk.holds(0)


#: What the server does in those ways of a call's end that are its doing.
SERVED = {
    "answered": Script([answer()], "kept"),
    "closed": Script([answer(b"half")[:-1]]),
    "reset": Script([], "reset"),
    "garbage": Script([b"garbage\r\n\r\n"], "kept"),
    "cancelled": Script([], "kept"),
    "late": Script([], "kept"),
    "stream": Script([answer(b"part" * 100)], "kept"),
}
ENDS = [*SERVED, "refused", "invalid"]


CHANCE = random.Random(3)


async def end_in(way: str, http: HttpClient, server: ScriptedServer, nowhere: str) -> None:
    """One call that ends so."""
    server.scripts = [SERVED[way]] if way in SERVED else []
    match way:
        case "refused":
            await get(http, nowhere)
        case "cancelled":
            call = asyncio.create_task(get(http, server.url))
            await turns(CHANCE.randint(0, 12))
            call.cancel()
            await call
        case "late":
            await get(http, server.url, timeout_s=0.02)
        case "invalid":
            await http.request("GET", server.url, headers={"X": "a\nb"}, timeout_s=CALL_S)
        case "stream":
            async with http.stream("GET", server.url, timeout_s=CALL_S) as response:
                async for _ in response.parts():
                    raise RuntimeError("the caller has had enough")
        case _:
            await get(http, server.url)


async def every_end_gives_its_place_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nowhere = f"http://127.0.0.1:{gone.getsockname()[1]}"
    async with ScriptedServer().running() as server, client(2) as http:
        for way in random.Random(1).choices(ENDS, k=150) + ENDS:
            with suppress(CallError, ValueError, RuntimeError, asyncio.CancelledError):
                async with asyncio.timeout(SOON_S):
                    await end_in(way, http, server, nowhere)
        # Both places are left, and no more.
        async with Desk().running() as desk:
            async with asyncio.timeout(SOON_S):
                await asyncio.gather(*[get(http, desk.url) for _ in range(10)])
            assert desk.most_open == 2


async def test_however_a_call_ends_it_gives_its_place_back() -> None:
    await every_end_gives_its_place_back()


async def test_under_uvloop_it_does_so_too(on_uvloop: OnUvloop) -> None:
    await on_uvloop(every_end_gives_its_place_back())


async def test_calls_cancelled_at_random_while_many_wait_lose_no_place() -> None:
    chance = random.Random(2)
    async with Desk().running() as desk, client(3) as http:
        for _ in range(20):
            calls = [
                asyncio.create_task(get(http, f"{desk.url}/{chance.choice(['a', 'close'])}"))
                for _ in range(15)
            ]
            for call in chance.sample(calls, 7):
                await turns(chance.randint(0, 6))
                call.cancel()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert all(one == b"ok" or isinstance(one, asyncio.CancelledError) for one in ended)
        async with asyncio.timeout(SOON_S):
            await asyncio.gather(*[get(http, desk.url) for _ in range(10)])

    assert desk.most_open >= 3


async def test_a_server_that_cannot_be_reached_takes_no_place() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nowhere = f"http://127.0.0.1:{gone.getsockname()[1]}"
    async with client(1) as http:
        for _ in range(5):
            with pytest.raises(NotConnected) as refused:
                await get(http, nowhere)
            assert not refused.value.sent
