"""A service with a bot on each messenger, and people who open the mini apps of those bots."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

from msgsvc_auth import plugin
from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.max import FakeMax
from msgsvc_devkit.platforms.sandbox import Sandbox
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_max import plugin as max_plugin
from msgsvc_sandbox import plugin as sandbox_plugin
from msgsvc_telegram import plugin as telegram_plugin

#: Each is also the name of the channel.
MESSENGERS = ("sandbox", "telegram", "max")

#: So that nobody waits for a turn; the pace is the core's, and tested there.
AT_ONCE: dict[str, Any] = {"per_bot_s": 1000, "per_chat_s": 1000}

#: What the link of the conftest, "shop", has its mini app opened with.
PAYLOAD = "auth_shop"

_update_ids = count(1)


@dataclass(frozen=True)
class MiniApps:
    """Opens mini apps on every messenger."""

    service: Service
    clock: FakeClock
    telegram: FakeTelegram
    max: FakeMax

    async def open(self, messenger: str, name: str = "Anna", payload: str = PAYLOAD) -> str:
        """The signed data that the page of a new person's mini app is given."""
        if messenger == "telegram":
            return self.telegram.person(name).open_mini_app(payload)
        if messenger == "max":
            person = self.max.person(name)
            await self.start(messenger, str(person.user_id), str(person.chat_id))
            return self.max.init_data(person, payload)
        person_of_sandbox = await Sandbox.in_process(self.service).person(name)
        return await person_of_sandbox.open_mini_app(messenger, payload)

    async def start(self, messenger: str, user_id: str, chat_id: str) -> None:
        """On MAX the bot knows a chat with who has started it only."""
        user = ChannelUser(user_id, "Anna", None, "en")
        number = f"start-{next(_update_ids)}"
        started = Started(update_id=number, chat_id=chat_id, user=user, payload="")
        await self.service.inbound.receive(messenger, started)


@asynccontextmanager
async def mini_apps_of(
    make_service: ServiceFactory, *more_plugins: tuple[str, Any]
) -> AsyncIterator[MiniApps]:
    """The service; its clock begins now, for the fakes sign with the real time."""
    clock = FakeClock(datetime.now(UTC))
    async with FakeTelegram() as telegram, FakeMax() as fake_max:
        fake_max.faults.no_limits()
        service = await make_service(
            extra_plugins=[
                ("auth", plugin),
                ("sandbox", sandbox_plugin),
                ("telegram", telegram_plugin),
                ("max", max_plugin),
                *more_plugins,
            ],
            channels={
                "sandbox": {"plugin": "sandbox"},
                "telegram": {
                    "plugin": "telegram",
                    "token": telegram.bot.token,
                    "base_url": telegram.url,
                    "receiving": "poll",
                    **AT_ONCE,
                },
                "max": {**fake_max.settings, **AT_ONCE},
            },
            use_clock=clock,
        )
        yield MiniApps(service, clock, telegram, fake_max)
        await service.stop()
