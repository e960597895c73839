"""One person's phone on each messenger, with the same buttons to press and the same things to see.

The messengers are the fakes of their plugins, which behave by their platforms' documentation.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.platforms import max as max_testing
from msgsvc_devkit.platforms import telegram as telegram_testing
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_max import plugin as max_plugin
from msgsvc_sandbox import plugin as sandbox_plugin
from msgsvc_sandbox.models import Message
from msgsvc_sandbox.service import Messenger as SandboxMessenger
from msgsvc_telegram import plugin as telegram_plugin

#: So that nobody waits for a turn; the pace is the core's, and tested there.
AT_ONCE: dict[str, Any] = {"per_bot_s": 1000, "per_chat_s": 1000}


@dataclass(frozen=True, slots=True)
class Seen:
    """A message of the bot. `buttons` are rows of labels, each with the URL it opens or None."""

    ref: str
    text: str
    marked_up: bool
    buttons: tuple[tuple[tuple[str, str | None], ...], ...]

    @property
    def labels(self) -> list[list[str]]:
        return [[label for label, _ in row] for row in self.buttons]


class Phone(Protocol):
    """What its owner does, and what it shows. Who waits in vain gets a `TimeoutError`."""

    async def open(self, link: str) -> None:
        """Opens a link to the bot, and presses Start."""

    async def messages(self) -> list[Seen]:
        """What the bot wrote, oldest first."""

    async def write(self, text: str) -> None:
        """Writes to the bot."""

    async def press(self, label: str) -> str:
        """Presses a button of the newest message that has it; returns the notice it is answered with."""

    def on(self, service: Service) -> "Phone":
        """The same after the service was started anew."""


@dataclass
class Messenger:
    """A messenger of one kind: how a service is connected to it, and whose phone is on it."""

    name: str
    plugin: Any
    settings: dict[str, Any]
    phone: Callable[[Service, str], Awaitable[Phone]]


async def seen(phone: Phone, text: str) -> Seen:
    """The newest message with `text`, waited for."""

    async def newest() -> Seen | None:
        found = [message for message in await phone.messages() if text in message.text]
        return found[-1] if found else None

    found = await until(newest, interval_s=0.02)
    assert found is not None
    return found


class TelegramPhone:
    def __init__(self, person: telegram_testing.Person) -> None:
        self.person = person

    async def open(self, link: str) -> None:
        await self.person.open(link)

    async def write(self, text: str) -> None:
        await self.person.write(text)

    def on(self, service: Service) -> Phone:
        return self

    async def messages(self) -> list[Seen]:
        return [
            Seen(
                str(message.message_id),
                message.text,
                bool(message.entities),
                tuple(
                    tuple((button["text"], button.get("url")) for button in row)
                    for row in message.buttons
                ),
            )
            for message in self.person.messages
        ]

    async def press(self, label: str) -> str:
        return await (await self.person.press(label)).answered()


class MaxPhone:
    def __init__(self, person: max_testing.Person) -> None:
        self.person = person

    async def open(self, link: str) -> None:
        await self.person.open(link)

    async def write(self, text: str) -> None:
        await self.person.write(text)

    def on(self, service: Service) -> Phone:
        return self

    async def messages(self) -> list[Seen]:
        return [
            Seen(
                message.mid,
                message.text,
                bool(message.markup),
                tuple(
                    tuple((button["text"], button.get("url")) for button in row)
                    for row in message.buttons
                ),
            )
            for message in self.person.messages
        ]

    async def press(self, label: str) -> str:
        await self.person.wait_for(button=label)
        before = len(self.person.notices)
        await self.person.press(label)

        async def answered() -> bool:
            return len(self.person.notices) > before

        await until(answered, interval_s=0.02)
        return self.person.notices[-1]


class SandboxPhone:
    def __init__(self, messenger: SandboxMessenger, person: SandboxPerson) -> None:
        self.messenger, self.person = messenger, person
        self.written: Message | None = None

    async def open(self, link: str) -> None:
        await self.person.open(link)

    async def write(self, text: str) -> None:
        self.written = await self.person.say(text, channel="messenger_a")

    def on(self, service: Service) -> Phone:
        messenger = service.get(SandboxMessenger)
        return SandboxPhone(messenger, SandboxPerson(messenger, self.person.profile))

    async def messages(self) -> list[Seen]:
        return [
            Seen(
                message.ref,
                message.text,
                any(span.marks or span.href for span in message.spans),
                tuple(
                    tuple((button.text, button.url) for button in row) for row in message.buttons
                ),
            )
            for message in await self.person.messages()
        ]

    async def press(self, label: str) -> str:
        before = await self._notice()
        await self.person.press(label, channel="messenger_a")

        async def answered() -> tuple[int, str] | None:
            now = await self._notice()
            return now if now[0] > before[0] else None

        found = await until(answered, interval_s=0.02)
        assert found is not None
        return found[1]

    async def _notice(self) -> tuple[int, str]:
        [chat] = (await self.messenger.state(self.person.person_id)).chats
        return chat.notice_revision, chat.notice


@asynccontextmanager
async def telegram() -> AsyncIterator[Messenger]:
    async with telegram_testing.FakeTelegram() as fake:

        async def phone(_service: Service, lang: str) -> Phone:
            return TelegramPhone(fake.person("Ann", username="ann_k", lang=lang))

        settings = {"token": fake.bot.token, "base_url": fake.url, "receiving": "poll", **AT_ONCE}
        yield Messenger("telegram", telegram_plugin, settings, phone)
        assert fake.complaints == []


@asynccontextmanager
async def max_() -> AsyncIterator[Messenger]:
    async with max_testing.FakeMax() as fake:
        fake.faults.no_limits()

        async def phone(_service: Service, lang: str) -> Phone:
            return MaxPhone(fake.person("Ann", username="ann_k", locale=lang))

        settings = {**fake.settings, "receiving": "poll", **AT_ONCE}
        yield Messenger("max", max_plugin, settings, phone)


@asynccontextmanager
async def sandbox() -> AsyncIterator[Messenger]:
    async def phone(service: Service, lang: Any) -> Phone:
        person = await Sandbox.in_process(service).person("Ann", username="ann_k", lang=lang)
        return SandboxPhone(service.get(SandboxMessenger), person)

    yield Messenger("sandbox", sandbox_plugin, {}, phone)


MESSENGERS = {"telegram": telegram, "max": max_, "sandbox": sandbox}
