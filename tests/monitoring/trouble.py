"""A service that is well, and then has every kind of trouble."""

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from aiohttp import web

from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.web_servers import stop
from msgsvc_sandbox.models import Reason
from tests.monitoring import clumsy
from tests.process import Deployment, install_module

#: Bots of the sandbox: one that stays well, and those that get into trouble, by what happens to them.
WELL = "well"
TROUBLES: Mapping[str, Reason] = {
    "banned": "bot_banned",
    "away": "platform_unavailable",
    "paused": "rate_limited",
    "refused": "invalid_message",
}

#: Connections that the server takes at once. Prometheus, the client and the messenger need some of them.
MAX_CONNECTIONS = 24

#: How much older a job or an outage is made, in milliseconds: more than any alert waits for.
HOUR_MS = 3_600_000

#: Seconds of a pause that a platform asks for: more than the alert lets pass.
PAUSE_S = 3600

#: Messages on each channel: more than the failures in a row that make an outage.
MESSAGES = 12

#: Sign-ins that nobody confirms: more than the alert lets pass.
UNCONFIRMED = 25


def configuration(telegram: FakeTelegram, runner: str = "embedded") -> str:
    """Of the service: all areas, the bots, and a Redis that is not there."""
    bots = "\n".join(f'[channels.{name}]\nplugin = "sandbox"' for name in (WELL, *TROUBLES))
    return f"""
plugins = ["sandbox", "telegram", "auth", "otp", "webhooks", "broadcasts", "billing", "helpdesk", "clumsy"]
redis_url = "redis://127.0.0.1:1/0"
{bots}
[channels.telegram]
plugin = "telegram"
token = "{telegram.bot.token}"
base_url = "{telegram.url}"
[jobs]
runner = "{runner}"
lease_s = 2
min_in_flight = 1
stopped_check_s = 600
probe_first_s = 600
probe_most_s = 600
reception_failing_s = 0
[limits]
requests_per_minute = 1000
[auth]
sessions_per_hour = 3600
[otp]
sends_per_hour = 100
[webhooks]
allow_http = true
allow_cidrs = ["127.0.0.0/8"]
disable_failing = true
"""


def deploy(folder: Path) -> Deployment:
    """A deployment with the plugin that makes mistakes."""
    assert clumsy.__file__ is not None
    return Deployment(folder, [install_module(folder / "installed", Path(clumsy.__file__))])


@asynccontextmanager
async def receivers() -> AsyncIterator[str]:
    """The address of receivers of webhooks: `/200`, `/500` and `/410` answer with that."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["status"]))

    app = web.Application()
    app.router.add_post("/{status}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await stop(runner)


class Project:
    """A project with a person on each channel."""

    def __init__(self, api: httpx2.AsyncClient, sandbox: Sandbox) -> None:
        self._api = api
        self.sandbox = sandbox
        self._people: dict[str, SandboxPerson] = {}
        self.subscribers: dict[str, str] = {}

    async def post(self, path: str, body: dict[str, Any], *, expected: tuple[int, ...]) -> Any:
        answer = await self._api.post(path, json=body)
        assert answer.status_code in expected, answer.text
        return answer.json()

    async def sign_in(self, channel: str) -> None:
        """A new person signs in by a channel."""
        session = await self.post("/v1/auth/session", {}, expected=(201,))
        person = await self.sandbox.person(channel.title())
        await person.open(session["links"][channel])
        await person.press("Yes")
        status = f"/v1/auth/session/{session['session_id']}/status?wait=25"
        code = (await self._api.get(status)).json()["code"]
        verified = await self.post("/v1/auth/verify", {"code": code}, expected=(200,))
        self._people[channel] = person
        self.subscribers[channel] = verified["subscriber_id"]

    async def find(self, channel: str) -> list[str]:
        """The ids of the subscribers of a channel."""
        found = (await self._api.get("/v1/subscribers", params={"channel": channel})).json()
        return [each["subscriber_id"] for each in found["data"]]

    async def begin_sign_ins(self, count: int) -> None:
        for _ in range(count):
            await self.post("/v1/auth/session", {}, expected=(201,))

    async def send(self, channel: str, count: int = 1) -> None:
        body = {"subscriber_id": self.subscribers[channel], "text": "hello"}
        for _ in range(count):
            await self.post("/v1/send", body, expected=(202,))

    async def try_to_write(self) -> int:
        """The status of a request that writes."""
        body = {"subscriber_id": self.subscribers[WELL], "text": "hello"}
        return (await self._api.post("/v1/send", json=body)).status_code

    async def ask_for_readiness(self, every_s: float) -> None:
        """Asks again and again, until it is cancelled."""
        while True:
            await self._api.get("/readyz")
            await asyncio.sleep(every_s)

    async def use_everything(self) -> None:
        """Sends, codes, tracked events, a ticket and a broadcast, on the channel that is well."""
        await self.send(WELL, 2)
        subscriber = self.subscribers[WELL]
        otp = {"subscriber_id": subscriber, "purpose": "pay"}
        await self.post("/v1/otp/send", otp, expected=(202,))
        await self.track()
        await self.open_ticket()
        await self.broadcast()

    async def track(self) -> None:
        tracked = {"subscriber_id": self.subscribers[WELL], "name": "bought"}
        await self.post("/v1/events", tracked, expected=(202,))

    async def open_ticket(self) -> None:
        ticket = {"subscriber_id": self.subscribers[WELL], "text": "Where is it?"}
        await self.post("/v1/tickets", ticket, expected=(201,))

    async def broadcast(self) -> None:
        body = {"audience": {"subscriber_ids": [self.subscribers[WELL]]}, "text": "news"}
        await self.post("/v1/broadcast", body, expected=(202,))

    async def add_webhook(self, url: str, *events: str) -> None:
        """A webhook for these events, by default all."""
        await self.post("/v1/webhooks", {"url": url, "events": events}, expected=(201,))

    async def say(self, text: str) -> None:
        await self._people[WELL].say(text)


@asynccontextmanager
async def project(url: str, key: str) -> AsyncIterator[Project]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as api,
        Sandbox.over_http(url) as sandbox,
    ):
        yield Project(api, sandbox)


@contextmanager
def open_connections(url: str, count: int) -> Iterator[None]:
    """Clients that have had an answer, and keep their connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    with ExitStack() as opened:
        for _ in range(count):
            client = opened.enter_context(socket.create_connection((host, int(port))))
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: msgsvc.test\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
        yield


def age(database: Path) -> None:
    """Makes due jobs, outages and interruptions an hour older."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.execute(
            f"UPDATE core_jobs SET run_at_ms = run_at_ms - {HOUR_MS} WHERE state = 'ready'"
            " AND run_at_ms <= 1000 * unixepoch() + 1000"
        )
        connection.execute(
            f"UPDATE core_channel_states SET outage_since_ms = outage_since_ms - {HOUR_MS},"
            f" interrupted_since_ms = interrupted_since_ms - {HOUR_MS}"
        )


@asynccontextmanager
async def locked(database: Path) -> AsyncIterator[None]:
    """Another process' lock on the file, which lets nobody write."""
    connection = await asyncio.to_thread(_lock, database)
    try:
        yield
    finally:
        connection.rollback()
        connection.close()


def _lock(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, timeout=30, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return connection
