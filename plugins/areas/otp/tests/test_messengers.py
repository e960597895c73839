"""The same through each messenger, by fakes that behave as their platforms document."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.max import FakeMax
from msgsvc_devkit.platforms.sandbox import Sandbox
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_max import plugin as max_plugin
from msgsvc_otp import plugin
from msgsvc_sandbox import plugin as sandbox_plugin
from msgsvc_telegram import plugin as telegram_plugin

from .conftest import refusal

#: A code on a line of its own.
CODE = re.compile(r"^(\d{6})$", re.MULTILINE)

#: So that nobody waits for a turn; the pace is the core's, and tested there.
AT_ONCE = {"per_bot_s": 1000, "per_chat_s": 1000}

MakeService = Callable[..., Awaitable[Service]]


@dataclass
class Reader:
    """Somebody with a messenger: opens links, and reads what the bot says."""

    open: Callable[[str], Awaitable[Any]]
    texts: Callable[[], Awaitable[list[str]]]

    async def codes(self, count: int) -> list[str]:
        """The codes in the chat, once there are so many."""

        async def enough() -> list[str]:
            found = [match[1] for text in await self.texts() if (match := CODE.search(text))]
            return found if len(found) >= count else []

        return await until(enough, interval_s=0.05, timeout_s=30)


@asynccontextmanager
async def on_telegram(make: MakeService) -> AsyncIterator[tuple[Service, Reader]]:
    async with FakeTelegram() as platform:
        bot = {
            "plugin": "telegram",
            "token": platform.bot.token,
            "base_url": platform.url,
            "receiving": "poll",
            **AT_ONCE,
        }
        service = await make(("telegram", telegram_plugin), bot)
        person = platform.person("Ann", username="ann", lang="en")

        async def texts() -> list[str]:
            return [message.text for message in person.messages]

        yield service, Reader(person.open, texts)
        await service.stop()
        assert platform.complaints == []


@asynccontextmanager
async def on_max(make: MakeService) -> AsyncIterator[tuple[Service, Reader]]:
    async with FakeMax() as platform:
        platform.faults.no_limits()
        bot = {**platform.settings, "receiving": "poll", **AT_ONCE}
        service = await make(("max", max_plugin), bot)
        person = platform.person("Ann", username="ann", locale="en-GB")

        async def texts() -> list[str]:
            return [message.text for message in person.messages]

        yield service, Reader(person.open, texts)
        await service.stop()


@asynccontextmanager
async def on_sandbox(make: MakeService) -> AsyncIterator[tuple[Service, Reader]]:
    service = await make(("sandbox", sandbox_plugin), {"plugin": "sandbox"})
    person = await Sandbox.in_process(service).person("Ann", username="ann", lang="en")

    async def texts() -> list[str]:
        return [message.text for message in await person.messages()]

    yield service, Reader(person.open, texts)


@pytest.mark.parametrize("messenger", [on_telegram, on_max, on_sandbox])
async def test_codes_by_a_link_and_by_a_send(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    messenger: Any,
) -> None:
    async def make(channel: Any, bot: dict[str, Any]) -> Service:
        return await make_service(
            extra_plugins=[channel, ("otp", plugin)],
            channels={"messenger_a": bot},
            use_clock=SystemClock(),
        )

    async with messenger(make) as (service, person):
        client = (await make_tenant(service)).client

        async def ready() -> bool:
            return service.channels["messenger_a"].link("x") is not None

        await until(ready)
        asked = (await client.post("/v1/otp/request", json={})).json()
        await person.open(asked["links"]["messenger_a"])
        (by_link,) = await person.codes(1)
        first = await client.post(
            "/v1/otp/verify", json={"otp_id": asked["otp_id"], "code": by_link}
        )
        who = {"subscriber_id": first.json()["subscriber_id"], "purpose": "pay"}
        sent = await client.post("/v1/otp/send", json=who)
        _, by_send = await person.codes(2)
        wrong = await client.post("/v1/otp/verify", json={**who, "code": "wrong"})
        second = await client.post("/v1/otp/verify", json={**who, "code": by_send})

        async def told() -> list[str]:
            feed = (await client.get("/v1/events?limit=100")).json()["data"]
            names = [event["event"] for event in feed if event["event"].startswith("otp.")]
            return names if names.count("otp.sent") == 2 else []

        assert sorted(await until(told, interval_s=0.05)) == [
            "otp.failed_attempt",
            "otp.sent",
            "otp.sent",
            "otp.verified",
            "otp.verified",
        ]

    assert (first.status_code, sent.status_code, second.status_code) == (200, 202, 200)
    assert (first.json()["first_name"], second.json()["purpose"]) == ("Ann", "pay")
    assert refusal(wrong) == (400, "otp_invalid")
