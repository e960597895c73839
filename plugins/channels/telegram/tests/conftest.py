"""A fake Telegram, a channel alone, and a service whose `messenger_a` is a bot there."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import ChannelContext, ChannelIdentity
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.db import Database
from msgsvc_core.files import Files
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.security import SecretBox
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_telegram import plugin
from msgsvc_telegram.channel import TelegramChannel
from msgsvc_telegram.settings import TelegramSettings

#: Files of tests are on this machine.
MEDIA = MediaSettings(allow_cidrs=("127.0.0.0/8",))

BASE_URL = "https://msgs.example"

PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    """Telegram without limits. Whatever was sent to it was as documented, unless a test says so."""
    async with FakeTelegram() as telegram:
        yield telegram
        assert telegram.complaints == []


@pytest.fixture
async def make_channel(telegram: FakeTelegram) -> AsyncIterator[Callable[..., TelegramChannel]]:
    """Makes channels alone, for the fake's bot; keywords are settings."""
    clock, secrets = SystemClock(), SecretBox([SECRET_KEY])
    db = Database("sqlite:///unused.db")
    files = Files(
        clock=clock,
        db=db,
        secrets=secrets,
        settings=MEDIA,
        jobs=JobQueue(clock),
        base_url=BASE_URL,
    )
    media = MediaFiles(clock=clock, settings=MEDIA, files=files)
    context = ChannelContext(
        clock=clock,
        db=db,
        secrets=secrets,
        base_url=BASE_URL,
        media=lambda: media,
        is_own_address=files.is_own_address,
        provided=Providers().get,
    )
    made: list[TelegramChannel] = []

    def make(**settings: Any) -> TelegramChannel:
        values = {"token": telegram.bot.token, "base_url": telegram.url, **settings}
        identity = ChannelIdentity("messenger_a", key="messenger_a")
        channel = TelegramChannel(context, identity, TelegramSettings.model_validate(values))
        made.append(channel)
        return channel

    yield make
    for channel in made:
        await channel.close()
    await media.close()


@pytest.fixture
def channel(make_channel: Callable[..., TelegramChannel]) -> TelegramChannel:
    return make_channel()


@pytest.fixture
async def anna(telegram: FakeTelegram) -> Person:
    """Somebody who has started the bot."""
    anna = telegram.person("Anna", username="anna_k", lang="en")
    await anna.start()
    return anna


class Site:
    """A service with a bot, over real HTTP, and a project that uses it."""

    def __init__(self, service: Service, tenant: Tenant, url: str) -> None:
        self.service, self.tenant, self.url = service, tenant, url
        self.client: httpx2.AsyncClient = tenant.client

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        response = await self.client.post(path, json=body)
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def events(self, name: str) -> list[dict[str, Any]]:
        response = await self.client.get("/v1/events", params={"limit": 100})
        return [each["data"] for each in response.json()["data"] if each["event"] == name]

    async def event(self, name: str) -> dict[str, Any]:
        """The first of that name, once there is one."""
        return (await self.some_events(name, 1))[0]

    async def some_events(self, name: str, count: int) -> list[dict[str, Any]]:
        """All of that name, once there are so many."""

        async def enough() -> list[dict[str, Any]]:
            found = await self.events(name)
            return found if len(found) >= count else []

        return await until(enough, interval_s=0.05)

    async def subscribe(self, person: Person) -> str:
        """Has a person open a subscription link; returns their subscriber's id."""
        answer = await self.post("/v1/subscribers/links")
        before = await self.events("subscription.created")
        await person.open(answer["links"]["messenger_a"])
        now = await self.some_events("subscription.created", len(before) + 1)
        (new,) = [each["subscriber_id"] for each in now if each not in before]
        return str(new)


SiteFactory = Callable[..., Awaitable[Site]]


@pytest.fixture
async def make_site(
    telegram: FakeTelegram,
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> AsyncIterator[SiteFactory]:
    """Makes a service that listens, with the plugins telegram and auth: `await make_site("poll")`."""
    stopping: list[Any] = []

    async def make(receiving: str, **options: Any) -> Site:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        bot = {
            "plugin": "telegram",
            "token": telegram.bot.token,
            "base_url": telegram.url,
            "receiving": receiving,
            # So that nobody waits for a turn; the pace is the core's, and tested there.
            "per_bot_s": 1000,
            "per_chat_s": 1000,
            **options.pop("bot", {}),
        }
        extra = options.pop("extra_plugins", [])
        service = await make_service(
            extra_plugins=[("telegram", plugin), ("auth", auth), *extra],
            channels={"messenger_a": bot},
            base_url=url,
            media=MEDIA,
            limits={"requests_per_minute": 100_000},
            use_clock=SystemClock(),
            **options,
        )
        serving = listening(service, listener)
        await serving.__aenter__()
        stopping.append(serving)
        await until(lambda: _ready(service, telegram, receiving))
        return Site(service, await make_tenant(service), url)

    yield make
    for serving in stopping:
        await serving.__aexit__(None, None, None)


@asynccontextmanager
async def listening(service: Service, listener: socket.socket) -> AsyncIterator[None]:
    """Serves requests to `service` on a socket."""
    server = uvicorn.Server(uvicorn.Config(service.app, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield
    server.should_exit = True
    await serving


async def _ready(service: Service, telegram: FakeTelegram, receiving: str) -> bool:
    asked = telegram.calls_of("getUpdates" if receiving == "poll" else "setWebhook")
    return service.channels["messenger_a"].profile is not None and bool(asked)
