"""A fake WhatsApp, a channel that talks to it, and a service whose webhook it calls."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import uvicorn
from aiohttp import web

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import (
    Channel,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Update,
    WebhookCall,
)
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.kernel.json import to_json_bytes
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, until
from msgsvc_devkit.core import channel_context
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.whatsapp import FakeWhatsApp, Person
from msgsvc_devkit.web_servers import stop
from msgsvc_whatsapp import plugin
from msgsvc_whatsapp.channel import WhatsAppChannel
from msgsvc_whatsapp.settings import WhatsAppSettings

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
PDF = b"%PDF-1.7 " + b"\0" * 32

#: Loopback hosts may be fetched from in tests.
MEDIA = {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]}

TEMPLATE = {"template": "notice", "template_language": "en"}


@pytest.fixture
async def platform() -> AsyncIterator[FakeWhatsApp]:
    async with FakeWhatsApp() as platform:
        platform.templates["notice", "en"] = "News for you: {{1}}. Answer to write with us."
        yield platform


@dataclass
class Chats:
    """When each chat was used last, as the core knows it."""

    last_ms: dict[str, int]

    async def last_update_ms(self, _channel: str, chat_id: str) -> int | None:
        return self.last_ms.get(chat_id)


@pytest.fixture
def chats() -> Chats:
    return Chats({})


ChannelFactory = Callable[..., WhatsAppChannel]


@pytest.fixture
async def make_channel(
    platform: FakeWhatsApp, clock: FakeClock, chats: Chats
) -> AsyncIterator[ChannelFactory]:
    """Makes channels alone; keywords are settings."""
    made: list[WhatsAppChannel] = []

    def make(**options: Any) -> WhatsAppChannel:
        values = {**platform.settings, **options}
        del values["plugin"]
        context = channel_context(clock=clock, last_update_ms=chats.last_update_ms)
        identity = ChannelIdentity("messenger_a", key="messenger_a")
        channel = WhatsAppChannel(context, identity, WhatsAppSettings.model_validate(values))
        made.append(channel)
        return channel

    yield make
    for channel in made:
        await channel.close()


@pytest.fixture
def channel(make_channel: ChannelFactory) -> WhatsAppChannel:
    return make_channel()


@pytest.fixture
async def ann(platform: FakeWhatsApp) -> Person:
    """A user who has just written."""
    ann = platform.person("Ann", username="ann")
    await ann.write("Hello")
    return ann


async def failure_of(call: Awaitable[Any]) -> DeliveryError:
    """The error of a call that must fail."""
    with pytest.raises(DeliveryError) as caught:
        await call
    return caught.value


async def send_to(channel: Channel, person: Person, text: str = "Hello", **fields: Any) -> str:
    return await channel.send(person.user_id, OutgoingMessage(text, **fields))


def call_of(platform: FakeWhatsApp, body: Any) -> WebhookCall:
    """A webhook call with this body, signed."""
    raw = body if isinstance(body, bytes) else to_json_bytes(body)
    return WebhookCall(raw, {"x-hub-signature-256": platform.webhooks.signature(raw)})


def received(channel: Channel, platform: FakeWhatsApp) -> list[Update]:
    """The updates of everything that the platform has told so far."""
    calls = [call_of(platform, body) for body in platform.webhooks.all]
    return [update for call in calls for update in channel.parse_update(call)]


@dataclass
class Shop:
    """A project of a service that listens, with its client and its messenger."""

    service: Service
    client: httpx2.AsyncClient
    platform: FakeWhatsApp

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


@pytest.fixture
async def shop(
    platform: FakeWhatsApp, make_service: ServiceFactory, make_tenant: Any
) -> AsyncIterator[Shop]:
    listener = socket.create_server(("127.0.0.1", 0))
    service = await make_service(
        extra_plugins=[("whatsapp", plugin), ("auth", auth)],
        use_clock=SystemClock(),
        start=False,
        base_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
        channels={
            "messenger_a": {
                **platform.settings,
                **TEMPLATE,
                # So that nobody waits for a turn; the pace is the core's, and tested there.
                "per_bot_s": 1000,
                "per_chat_s": 1000,
            }
        },
        media=MEDIA,
    )
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with service:

        async def ready() -> bool:
            profile = service.channels["messenger_a"].profile is not None
            return profile and bool(platform.webhooks.override)

        await until(ready)
        tenant = await make_tenant(service)
        yield Shop(service, tenant.client, platform)
        server.should_exit = True
        await serving


@pytest.fixture
async def media_url() -> AsyncIterator[str]:
    """The address of a host with a project's files."""
    files = {"p.png": (PNG, "image/png"), "d.pdf": (PDF, "application/pdf")}

    async def give(request: web.Request) -> web.Response:
        content, kind = files[request.match_info["name"]]
        return web.Response(body=content, content_type=kind)

    app = web.Application()
    app.add_routes([web.get("/{name}", give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site.port}"
    await stop(runner)
