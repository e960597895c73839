"""A fake MAX, a channel that talks to it, and a host with files."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import uvicorn
from aiohttp import web

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import Channel, DeliveryError, OutgoingMessage
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, until
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.max import FakeMax, Person
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_devkit.web_servers import stop
from msgsvc_max import plugin
from msgsvc_max.channel import MaxChannel

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
MP4 = b"\0\0\0\x18ftypmp42" + b"\0" * 32
PDF = b"%PDF-1.7 " + b"\0" * 32

#: Loopback hosts may be fetched from in tests.
MEDIA = {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]}


@dataclass
class MediaHost:
    """A project's files; `hits` are the paths that were asked for."""

    url: str = ""
    hits: list[str] = field(default_factory=list)
    #: Answered with 403 while the name is in here, to everybody but the service itself.
    hidden: set[str] = field(default_factory=set)


@pytest.fixture
async def media_host() -> AsyncIterator[MediaHost]:
    host = MediaHost()
    files = {"p.png": PNG, "v.mp4": MP4, "d.pdf": PDF, "t.txt": b"no picture"}

    async def give(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        host.hits.append(name)
        if name in host.hidden and request.headers.get("User-Agent") != "msgsvc":
            return web.Response(status=403)
        kind = {"png": "image/png", "mp4": "video/mp4"}.get(name[-3:], "application/pdf")
        return web.Response(body=files[name], content_type=kind)

    app = web.Application()
    app.add_routes([web.get("/{name}", give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host.url = f"http://127.0.0.1:{site.port}"
    yield host
    await stop(runner)


@pytest.fixture
async def platform() -> AsyncIterator[FakeMax]:
    """A fake without its limits, which have tests of their own."""
    async with FakeMax() as platform:
        platform.faults.no_limits()
        yield platform


ChannelFactory = Callable[..., Awaitable[MaxChannel]]


@pytest.fixture
async def make_channel(platform: FakeMax, clock: FakeClock) -> AsyncIterator[ChannelFactory]:
    """A channel of a service that is not started: nothing else talks to the fake."""
    async with AsyncExitStack() as stack:

        async def make(**options: Any) -> MaxChannel:
            values = {
                "secret_keys": (SECRET_KEY,),
                "plugins": (),
                "channels": {"messenger_a": {**platform.settings, **options}},
                "media": MEDIA,
            }
            service = Service(
                Settings.model_validate(values), clock=clock, extra_plugins=[("max", plugin)]
            )
            stack.push_async_callback(service.media.close)
            channel = service.channels["messenger_a"]
            stack.push_async_callback(channel.close)
            assert isinstance(channel, MaxChannel)
            return channel

        yield make


@pytest.fixture
async def channel(make_channel: ChannelFactory) -> MaxChannel:
    return await make_channel()


@pytest.fixture
async def ann(platform: FakeMax) -> Person:
    """Somebody who has started the bot."""
    ann = platform.person("Ann", username="ann", locale="en-GB")
    await ann.start()
    return ann


async def failure_of(call: Awaitable[Any]) -> DeliveryError:
    """The error of a call that must fail."""
    with pytest.raises(DeliveryError) as caught:
        await call
    return caught.value


async def send_to(channel: Channel, person: Person, text: str = "Hello", **fields: Any) -> str:
    return await channel.send(str(person.chat_id), OutgoingMessage(text, **fields))


#: Database, who runs the jobs, and how updates come.
SETUPS = [
    ("sqlite", "embedded", "poll"),
    ("sqlite", "embedded", "webhook"),
    ("postgresql", "embedded", "poll"),
    ("postgresql", "embedded", "webhook"),
    ("postgresql", "redis", "poll"),
    ("postgresql", "redis", "webhook"),
]


@dataclass
class Shop:
    """A project of a service that listens, with its client and its messenger."""

    service: Service
    client: httpx2.AsyncClient
    platform: FakeMax

    @property
    def hook(self) -> str:
        return f"{self.service.settings.base_url}/hooks/messenger_a"

    async def events(self, name: str) -> list[dict[str, Any]]:
        """The project's events of one name, oldest first."""
        answer = await self.client.get("/v1/events", params={"event": name})
        return [event["data"] for event in reversed(answer.json()["data"])]

    async def event(self, name: str) -> dict[str, Any]:
        """The first event of that name, waited for."""
        found = await until(lambda: self.events(name), interval_s=0.05)
        return found[0]

    async def subscribe(self, person: Person) -> str:
        """Has the person open a subscription link; returns the subscriber's id."""
        answer = await self.client.post("/v1/subscribers/links", json={})
        before = len(await self.events("subscription.created"))
        await person.open(answer.json()["links"]["messenger_a"])

        async def subscribed() -> list[dict[str, Any]]:
            return (await self.events("subscription.created"))[before:]

        return str((await until(subscribed, interval_s=0.05))[0]["subscriber_id"])

    async def send(self, subscriber_id: str, text: str, **message: Any) -> str:
        answer = await self.client.post(
            "/v1/send", json={"subscriber_id": subscriber_id, "text": text, **message}
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])

    async def status(self, message_id: str, status: str) -> None:
        """Returns when the message has that status."""

        async def reached() -> bool:
            message = (await self.client.get(f"/v1/messages/{message_id}")).json()
            return bool(message["status"] == status)

        await until(reached)


@pytest.fixture
async def shop(
    platform: FakeMax, receiving: str, make_service: ServiceFactory, make_tenant: Any
) -> AsyncIterator[Shop]:
    listener = socket.create_server(("127.0.0.1", 0))
    service = await make_service(
        extra_plugins=[("max", plugin), ("auth", auth)],
        use_clock=SystemClock(),
        start=False,
        base_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
        channels={
            "messenger_a": {
                **platform.settings,
                "receiving": receiving,
                # So that nobody waits for a turn; the pace is the core's, and tested there.
                "per_bot_s": 1000,
                "per_chat_s": 1000,
            }
        },
        media=MEDIA,
    )
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None))
    async with service:
        serving = asyncio.create_task(server.serve(sockets=[listener]))

        async def ready() -> bool:
            profile = service.channels["messenger_a"].profile is not None
            return profile and (receiving == "poll" or bool(platform.updates.subscriptions))

        await until(ready)
        tenant = await make_tenant(service)
        yield Shop(service, tenant.client, platform)
        server.should_exit = True
        await serving
