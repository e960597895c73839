"""A guarded server in this process, whose time stands still, and raw connections to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import uvloop
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.server import ConnectionLimits, Server, bind
from msgsvc_core.telemetry import Metrics
from msgsvc_devkit.deadlines import patient

#: Seconds that something on this machine gets to happen.
PATIENCE_S = patient(60.0)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that `msgsvc serve` runs on: its transports are not asyncio's."""
    return {"uvloop": uvloop.new_event_loop}


class Time:
    """What the guard takes for the time."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class OwnRegistry:
    """As much of a service's metrics as a guard needs."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()


@dataclass
class Client:
    """One connection, byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def push(self, data: bytes) -> None:
        """Sends without waiting, to a server that may have hung up."""
        if not self.writer.transport.is_closing():
            self.writer.write(data)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by lower-case name, and the body, which has a Content-Length."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (li.split(": ", 1) for li in lines)}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(first.split(" ")[1]), headers, body

    async def is_closed(self) -> bool:
        """Whether the server ends the connection, now or in a moment. What it sends is dropped."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while await self.reader.read(65536):
                    pass
        except ConnectionError:
            return True
        return True


@dataclass
class Door:
    """The server, its guard, and the clients at it."""

    server: Server
    guard: ConnectionLimits
    time: Time
    address: tuple[str, int]
    metrics: OwnRegistry
    clients: list[Client] = field(default_factory=list)

    async def connect(self, data: bytes = b"") -> Client:
        """A connection on which `data` was sent, and that the server has taken."""
        before = self.open
        client = await self.knock()
        await self.until(lambda: self.open > before)
        if data:
            await client.send(data)
            await self.settle()
        return client

    async def knock(self) -> Client:
        """A connection that the server may not even take."""
        client = Client(*await asyncio.open_connection(*self.address))
        self.clients.append(client)
        return client

    async def settle(self) -> None:
        """Lets what was sent over loopback arrive and be read."""
        for _ in range(20):
            await asyncio.sleep(0.001)

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - what it waits for is the server's own state
                await asyncio.sleep(0.001)

    @property
    def open(self) -> int:
        return len(self.server.server_state.connections)

    async def pass_time(self, seconds: float) -> None:
        """Moves time on in steps, with a look at all connections after each, as every second has."""
        end = self.time.now + seconds
        while self.time.now < end:
            self.time.now = min(self.time.now + 1.0, end)
            await self.sweep()

    async def sweep(self) -> None:
        self.guard.sweep(cast("Any", self.server.server_state.connections))
        await asyncio.sleep(0)

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"msgsvc_http_{name}", labels) or 0.0


DoorFactory = Callable[..., Awaitable[Door]]


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the length of the body. `/slow` waits for ever; `/large` sends 8 MiB."""
    if scope["path"] == "/slow":
        await asyncio.Event().wait()
    size = 0
    while scope["path"] != "/unread":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = b"x" * (8 << 20) if scope["path"] == "/large" else str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def _standing(app: ASGIApp, **settings: Any) -> AsyncIterator[Door]:
    time = Time()
    metrics = OwnRegistry()
    guard = ConnectionLimits(
        ServerSettings.model_validate(settings),
        "https://msgsvc.example/docs/errors",
        cast("Metrics", metrics),
        monotonic=time,
    )
    server = Server(app, guard, signals=False)
    listener = bind("127.0.0.1", 0)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    door = Door(server, guard, time, listener.getsockname()[:2], metrics)
    try:
        await door.until(lambda: server.started)
        yield door
    finally:
        for client in door.clients:
            client.writer.transport.abort()
        server.should_exit = server.force_exit = True
        for running in list(server.server_state.tasks):
            running.cancel()
        await task
        listener.close()


@pytest.fixture
async def make_door() -> AsyncIterator[DoorFactory]:
    """Opens doors: `await make_door(max_connections=10)`."""
    standing: list[Any] = []

    async def make(app: ASGIApp = echo, **settings: Any) -> Door:
        context = _standing(app, **settings)
        door = await context.__aenter__()
        standing.append(context)
        return door

    yield make
    for context in standing:
        await context.__aexit__(None, None, None)
