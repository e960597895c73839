"""The same customer on three messengers, each a fake that speaks its platform's protocol."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from msgsvc_core.service import Service
from msgsvc_devkit.platforms.max import FakeMax
from msgsvc_devkit.platforms.max import Person as MaxPerson
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.platforms.telegram import Person as TelegramPerson
from msgsvc_max import plugin as max_plugin
from msgsvc_sandbox import plugin as sandbox_plugin
from msgsvc_telegram import plugin as telegram_plugin

NAMES = ("sandbox", "telegram", "max")


class Customer(Protocol):
    """What a customer does and sees, whatever their messenger."""

    async def open(self, link: str) -> None: ...
    async def write(self, text: str) -> None: ...
    async def shown(self) -> list[str]:
        """What the bot has said, as a person sees it."""
        ...


class Platform(Protocol):
    """A messenger, and what the service is configured with to use it."""

    plugin: tuple[str, Any]
    channel: dict[str, Any]

    async def customer(self, service: Service, name: str) -> Customer: ...


class _Sandbox:
    plugin = ("sandbox", sandbox_plugin)
    channel = {"plugin": "sandbox"}  # noqa: RUF012 - nobody changes it

    async def customer(self, service: Service, name: str) -> Customer:
        return _SandboxCustomer(await Sandbox.in_process(service).person(name))


class _SandboxCustomer:
    def __init__(self, person: SandboxPerson) -> None:
        self._person = person

    async def open(self, link: str) -> None:
        await self._person.open(link)

    async def write(self, text: str) -> None:
        await self._person.say(text)

    async def shown(self) -> list[str]:
        return [message.text for message in await self._person.messages()]


class _Telegram:
    plugin = ("telegram", telegram_plugin)

    def __init__(self, fake: FakeTelegram) -> None:
        self._fake = fake
        self.channel = {
            "plugin": "telegram",
            "token": fake.bot.token,
            "base_url": fake.url,
            "receiving": "poll",
            "per_bot_s": 1000,
            "per_chat_s": 1000,
        }

    async def customer(self, service: Service, name: str) -> Customer:
        return _ChattingCustomer(self._fake.person(name, lang="en"))


class _Max:
    plugin = ("max", max_plugin)

    def __init__(self, fake: FakeMax) -> None:
        self._fake = fake
        self.channel = {**fake.settings, "receiving": "poll", "per_bot_s": 1000, "per_chat_s": 1000}

    async def customer(self, service: Service, name: str) -> Customer:
        return _ChattingCustomer(self._fake.person(name, locale="en-GB"))


class _ChattingCustomer:
    def __init__(self, person: TelegramPerson | MaxPerson) -> None:
        self.person = person

    async def open(self, link: str) -> None:
        await self.person.open(link)

    async def write(self, text: str) -> None:
        await self.person.write(text)

    async def shown(self) -> list[str]:
        return [message.text for message in self.person.messages]


@asynccontextmanager
async def platform_of(name: str) -> AsyncIterator[Platform]:
    """A messenger by its name; what was sent to it was as its platform documents."""
    match name:
        case "sandbox":
            yield _Sandbox()
        case "telegram":
            async with FakeTelegram() as telegram:
                yield _Telegram(telegram)
                assert telegram.complaints == []
        case _:
            async with FakeMax() as fake:
                fake.faults.no_limits()
                yield _Max(fake)
