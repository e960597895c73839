"""A bot that receives nothing says so, over real HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.max import FakeMax, Refused
from msgsvc_devkit.platforms.max.updates import Subscription
from msgsvc_max import channel, plugin

#: So that a test need not wait for what operators see after half a minute.
SOON: dict[str, Any] = {"reception_failing_s": 0.5, "webhook_check_s": 0.1}

ELSEWHERE = "https://elsewhere.example/hooks/messenger_a"

Serve = Callable[..., Awaitable[Service]]


@pytest.fixture
def serve(make_service: ServiceFactory, platform: FakeMax) -> Serve:
    """Makes a service whose `messenger_a` is the fake's bot, and which has been received for."""

    async def make(receiving: str, **jobs: Any) -> Service:
        service = await make_service(
            extra_plugins=[("max", plugin)],
            channels={"messenger_a": {**platform.settings, "receiving": receiving}},
            base_url="http://127.0.0.1:9",
            use_clock=SystemClock(),
            jobs={**SOON, **jobs},
        )

        async def ready() -> bool:
            return service.channels["messenger_a"].profile is not None and (
                receiving == "poll" or await webhook_is_set(service)
            )

        await until(ready)
        return service

    return make


async def webhook_is_set(service: Service) -> bool:
    """Whether the platform was told all that it has to know: nothing more is changed there then."""
    async with service.db.read() as tx:
        found = await tx.fetch_one(
            "SELECT channel FROM core_bots WHERE webhook_digest IS NOT NULL", {}
        )
    return found is not None


async def interruption(service: Service) -> str | None:
    """Why the bot receives nothing; None while it receives."""
    async with service.db.read() as tx:
        shown = await service.get(ReceptionHealth).shown(tx, service.channels.shared)
    found = shown["messenger_a"]
    assert found is not None
    return found.detail if found.status == "interrupted" else None


async def interrupted(service: Service) -> str:
    return await until(lambda: interruption(service))


async def receiving(service: Service) -> None:
    async def receives() -> bool:
        return await interruption(service) is None

    await until(receives)


async def is_subscribed(platform: FakeMax, url: str) -> bool:
    return list(platform.updates.subscriptions) == [url]


async def has_asked(platform: FakeMax, times: int) -> bool:
    return checks_of(platform) >= times


def checks_of(platform: FakeMax) -> int:
    return sum(call.name == "GET /subscriptions" for call in platform.calls)


async def call(service: Service, webhook: Subscription, update: dict[str, Any]) -> httpx2.Response:
    """As the platform calls, once it reaches the address."""
    transport = httpx2.ASGITransport(app=service.app)
    headers = {channel.SECRET_HEADER: webhook.secret or ""}
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        return await client.post(urlsplit(webhook.url).path, json=update, headers=headers)


@pytest.mark.parametrize("status", [409, 502])
async def test_polls_that_are_refused_are_told(serve, platform, ann, status):
    service = await serve("poll")
    platform.faults.fail_next(Refused(status, "no.updates", "ask somebody else"), times=3)
    # Ends the poll that waits, so that the next one is refused.
    await ann.write("hello")

    why = await interrupted(service)
    await ann.write("hello again")
    await receiving(service)

    assert "ask somebody else" in why


async def test_a_platform_that_refuses_connections_is_told(serve, platform, ann):
    service = await serve("poll")
    await platform.kill()

    why = await interrupted(service)
    await platform.restart()
    await ann.write("hello")
    await receiving(service)

    assert why


async def test_a_webhook_of_another_program_is_told_and_left_alone(serve, platform):
    service = await serve("webhook")
    ours = dict(platform.updates.subscriptions)
    platform.updates.subscriptions.clear()
    platform.updates.subscriptions[ELSEWHERE] = Subscription(ELSEWHERE, None, None)

    why = await interrupted(service)
    left = list(platform.updates.subscriptions)
    platform.updates.subscriptions.clear()
    platform.updates.subscriptions.update(ours)
    await receiving(service)

    assert "another address, at elsewhere.example" in why
    assert left == [ELSEWHERE]


async def test_a_webhook_that_was_removed_is_set_anew(serve, platform):
    service = await serve("webhook", reception_failing_s=30)
    before = list(platform.updates.subscriptions)
    platform.updates.subscriptions.clear()

    await until(lambda: is_subscribed(platform, *before))
    assert await interruption(service) is None


@pytest.mark.both_databases
async def test_a_webhook_that_max_has_given_up_is_told_until_max_calls_again(
    serve, platform, ann, monkeypatch
):
    # MAX tells of no call that failed: after eight hours the address is gone, and that is all.
    monkeypatch.setattr(channel, "GIVEN_UP_AFTER_S", 1.0)
    service = await serve("webhook")
    await asyncio.sleep(1.1)  # by the machine's clock, which the service goes by
    (webhook,) = platform.updates.subscriptions.values()
    platform.updates.subscriptions.clear()

    why = await interrupted(service)
    await until(lambda: is_subscribed(platform, webhook.url))
    checks = checks_of(platform)
    await until(lambda: has_asked(platform, checks + 3))
    still = await interruption(service)
    await ann.write("hello")
    answer = await call(service, webhook, platform.updates.all[-1])
    await receiving(service)

    assert "answered no call well for 8 hours" in why
    assert still == why
    assert answer.status_code == 200
