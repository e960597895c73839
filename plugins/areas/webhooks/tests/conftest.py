"""A service with the plugin, and a receiver that can be told to misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from msgsvc_core.service import Service
from msgsvc_devkit.web_servers import stop
from msgsvc_webhooks import plugin

Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Plain http on loopback, where the tests' receiver is.
#: What an operator may switch on beside the letter of the API's contract; `test_letter.py` has it off.
TOLERANT = {"retry_timeouts_and_throttling": True, "disable_failing": True}

SETTINGS = {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"], "attempt_timeout_s": 5, **TOLERANT}

#: For a service that gives no call up while its test runs, and doesn't wait for them when it stops.
PATIENT = {"attempt_timeout_s": 60, "core": {"jobs": {"sweep_s": 0.05, "grace_s": 0.2}}}


@dataclass(frozen=True)
class Received:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers 200 `ok`; `then` says what comes instead, one behaviour a request."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    always: Behaviour | None = None
    sent_bytes: int = 0
    _next: list[Behaviour] = field(default_factory=list)

    def then(self, *behaviours: Behaviour) -> None:
        self._next.extend(behaviours)

    def answer(self, status: int, text: str = "", **headers: str) -> Behaviour:
        async def behave(_request: web.Request) -> web.StreamResponse:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=text, headers=named)

        return behave

    def answer_bytes(self, body: bytes, **headers: str) -> Behaviour:
        async def behave(_request: web.Request) -> web.StreamResponse:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(body=body, headers=named)

        return behave

    async def trickle(self, request: web.Request) -> web.StreamResponse:
        """A byte now and then, without end."""
        return await self._stream(request, b".", pause_s=0.02)

    async def flood(self, request: web.Request) -> web.StreamResponse:
        """As much as the other side takes, without end."""
        return await self._stream(request, b"x" * 65536, pause_s=0)

    async def hang_up(self, request: web.Request) -> web.StreamResponse:
        """No answer at all."""
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def break_off(self, request: web.Request) -> web.StreamResponse:
        """Half of the promised answer."""
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    async def _stream(
        self, request: web.Request, chunk: bytes, *, pause_s: float
    ) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(chunk)
                self.sent_bytes += len(chunk)
                await asyncio.sleep(pause_s)
        return response

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.received.append(Received(request.path, request.headers.copy(), body))
        if self._next:
            return await self._next.pop(0)(request)
        if self.always is not None:
            return await self.always(request)
        return web.Response(text="ok")


@pytest.fixture
async def make_receiver() -> AsyncIterator[Callable[[], Awaitable[Receiver]]]:
    """Starts receivers on free ports of 127.0.0.1."""
    runners: list[web.AppRunner] = []

    async def make() -> Receiver:
        receiver = Receiver()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", receiver.handle)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.01)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        receiver.url = f"http://{host}:{port}/hook"
        return receiver

    yield make
    for runner in runners:
        await stop(runner)


@pytest.fixture
async def receiver(make_receiver: Callable[[], Awaitable[Receiver]]) -> Receiver:
    return await make_receiver()


@pytest.fixture
async def make_webhook_service(make_service: Any) -> Callable[..., Awaitable[Service]]:
    """Makes services with the plugin; arguments are settings of `[webhooks]`, `core` the others."""

    async def make(*, core: Mapping[str, Any] | None = None, **webhooks: Any) -> Service:
        return await make_service(
            extra_plugins=[("webhooks", plugin)],
            webhooks={**SETTINGS, **webhooks},
            **(core or {}),
        )

    return make


@pytest.fixture
async def service(
    make_webhook_service: Callable[..., Awaitable[Service]], request: pytest.FixtureRequest
) -> Service:
    return await make_webhook_service(**getattr(request, "param", {}))


@pytest.fixture
def emit(service: Service, tenant: Any) -> Callable[..., Awaitable[Any]]:
    """Lets an event happen in the project of `tenant`."""

    async def happen(name: str = "subscription.created", **fields: Any) -> Any:
        async with service.db.transaction() as tx:
            return await service.events.emit(
                tx, tenant.project.project_id, name, fields or {"source": "api"}
            )

    return happen


@pytest.fixture
def add_webhook(client: Any, receiver: Receiver) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Adds a webhook to the project of `tenant`, by default one of `receiver` for all events."""

    async def add(url: str | None = None, **fields: Any) -> dict[str, Any]:
        response = await client.post("/v1/webhooks", json={"url": url or receiver.url, **fields})
        assert response.status_code == 201, response.text
        return response.json()

    return add


@pytest.fixture
def journal(client: Any) -> Callable[[dict[str, Any]], Awaitable[list[dict[str, Any]]]]:
    """The deliveries of a webhook as the API shows them."""

    async def read(webhook: dict[str, Any]) -> list[dict[str, Any]]:
        response = await client.get(f"/v1/webhooks/{webhook['webhook_id']}/deliveries")
        assert response.status_code == 200, response.text
        return response.json()["data"]

    return read
