"""Several people on one messenger, who write to its bot and answer what it said."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from msgsvc_core.service import Service
from msgsvc_devkit.platforms import max as max_testing
from msgsvc_devkit.platforms import telegram as telegram_testing
from msgsvc_devkit.platforms.sandbox import Sandbox
from msgsvc_max import plugin as max_plugin
from msgsvc_sandbox import plugin as sandbox_plugin
from msgsvc_sandbox.service import Messenger as SandboxMessenger
from msgsvc_telegram import plugin as telegram_plugin
from tests.channels.phones import AT_ONCE, MaxPhone, Phone, SandboxPhone, Seen, TelegramPhone


@dataclass
class Crowd:
    """A messenger: `plugin` and `settings` connect a service to it, `person` is somebody new on it."""

    name: str
    plugin: Any
    settings: dict[str, Any]
    person: Callable[[Service, str, str], Awaitable[Phone]]


async def write(phone: Phone, text: str, answering: Seen | None = None) -> None:
    """Sends the bot a text; as the answer to a message of it, where the messenger tells that."""
    if isinstance(phone, TelegramPhone):
        content: dict[str, Any] = {}
        if answering is not None:
            above = {"message_id": int(answering.ref), "chat": phone.person.chat.info, "date": 0}
            content["reply_to_message"] = {**above, "text": answering.text}
        await phone.person.write(text, **content)
    elif isinstance(phone, MaxPhone):
        if answering is None:
            await phone.person.write(text)
        else:
            await phone.person.reply(answering.ref, text)
    else:
        assert isinstance(phone, SandboxPhone)
        await phone.person.say(text, reply_to=None if answering is None else answering.ref)


@asynccontextmanager
async def telegram() -> AsyncIterator[Crowd]:
    async with telegram_testing.FakeTelegram() as fake:

        async def person(_service: Service, name: str, lang: str) -> Phone:
            return TelegramPhone(fake.person(name, lang=lang))

        settings = {"token": fake.bot.token, "base_url": fake.url, "receiving": "poll"}
        yield Crowd("telegram", telegram_plugin, {**settings, **AT_ONCE}, person)
        assert fake.complaints == []


@asynccontextmanager
async def max_() -> AsyncIterator[Crowd]:
    async with max_testing.FakeMax() as fake:
        fake.faults.no_limits()

        async def person(_service: Service, name: str, lang: str) -> Phone:
            return MaxPhone(fake.person(name, locale=lang))

        yield Crowd("max", max_plugin, {**fake.settings, "receiving": "poll", **AT_ONCE}, person)


@asynccontextmanager
async def sandbox() -> AsyncIterator[Crowd]:
    async def person(service: Service, name: str, lang: Any) -> Phone:
        made = await Sandbox.in_process(service).person(name, lang=lang)
        return SandboxPhone(service.get(SandboxMessenger), made)

    yield Crowd("sandbox", sandbox_plugin, {}, person)


CROWDS = {"telegram": telegram, "max": max_, "sandbox": sandbox}
