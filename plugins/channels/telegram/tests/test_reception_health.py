"""A bot that receives nothing says so, over real HTTP, and sends meanwhile."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_telegram import plugin

from .conftest import SiteFactory, listening

#: So that a test need not wait for what operators see after half a minute.
SOON: dict[str, Any] = {"reception_failing_s": 0.5, "webhook_check_s": 0.1}

ELSEWHERE = "https://elsewhere.example/hooks/messenger_a"


@asynccontextmanager
async def other_poller(telegram: FakeTelegram) -> AsyncIterator[None]:
    """Another program that asks for the updates of the same bot, again and again."""

    async def poll() -> None:
        async with httpx2.AsyncClient(base_url=telegram.url, timeout=60) as client:
            while True:
                await client.post(f"/bot{telegram.bot.token}/getUpdates", json={"timeout": 30})

    polling = asyncio.create_task(poll())
    yield
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)


async def webhook_is_set(service: Service) -> bool:
    """Whether the platform was told all that it has to know: nothing more is changed there then."""
    async with service.db.read() as tx:
        found = await tx.fetch_one(
            "SELECT channel FROM core_bots WHERE webhook_digest IS NOT NULL", {}
        )
    return found is not None


async def interruption(service: Service) -> str | None:
    """Why the bot receives nothing, as `/readyz` says it to an operator; None while it receives."""
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


async def test_another_program_that_polls_is_told_and_nothing_else_suffers(
    make_site: SiteFactory, telegram, anna
):
    site = await make_site("poll", jobs=SOON)
    subscriber = await site.subscribe(anna)

    async with other_poller(telegram):
        why = await interrupted(site.service)
        ready = await site.client.get("/readyz")
        sent = await site.post("/v1/send", subscriber_id=subscriber, text="all the same")
        await site.event("delivery.success")
    await anna.write("are you there?")
    await receiving(site.service)
    after = (await site.client.get("/readyz")).json()

    assert "each bot needs a token of its own" in why
    assert sent["status"] == "queued"
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    check = ready.json()["checks"]["channel:messenger_a"]
    assert check["reception"]["reason"] == "polling_failed"
    assert "reception" not in after["checks"]["channel:messenger_a"]


async def test_a_gateway_that_refuses_polls_is_told(make_site: SiteFactory, telegram, anna):
    telegram.answer_next("getUpdates", 502, b"<html>Bad Gateway</html>", times=3)
    site = await make_site("poll", jobs=SOON)

    why = await interrupted(site.service)
    await anna.write("hello")
    await receiving(site.service)

    assert "status 502" in why


async def test_a_platform_that_refuses_connections_is_told(make_site: SiteFactory, telegram, anna):
    site = await make_site("poll", jobs=SOON)
    await telegram.kill()

    why = await interrupted(site.service)
    await telegram.restart()
    await anna.write("hello")
    await receiving(site.service)

    assert "127.0.0.1" in why


async def test_a_webhook_that_telegram_can_not_reach_is_told(
    make_service: ServiceFactory, telegram, anna
):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    service = await make_service(
        extra_plugins=[("telegram", plugin)],
        channels={
            "messenger_a": {
                "plugin": "telegram",
                "token": telegram.bot.token,
                "base_url": telegram.url,
                "receiving": "webhook",
            }
        },
        base_url=f"http://127.0.0.1:{port}",
        use_clock=SystemClock(),
        jobs=SOON,
    )

    why = await interrupted(service)
    async with listening(service, socket.create_server(("127.0.0.1", port))):
        await receiving(service)

    assert "Telegram's last call to us failed: Connection refused" in why


async def test_a_webhook_that_leads_elsewhere_is_told_and_left_alone(
    make_site: SiteFactory, telegram, anna
):
    site = await make_site("webhook", jobs=SOON)
    await until(lambda: webhook_is_set(site.service))
    ours, telegram.bot.updates.webhook.url = telegram.bot.updates.webhook.url, ELSEWHERE

    why = await interrupted(site.service)
    left = telegram.bot.updates.webhook.url
    telegram.bot.updates.webhook.url = ours
    await receiving(site.service)

    assert "another address, at elsewhere.example" in why
    assert left == ELSEWHERE


async def test_a_webhook_that_was_removed_is_set_anew(make_site: SiteFactory, telegram, anna):
    site = await make_site("webhook", jobs={**SOON, "reception_failing_s": 30})
    await until(lambda: webhook_is_set(site.service))
    telegram.bot.updates.webhook.url = ""
    await anna.write("hello")

    await until(lambda: _is_set(telegram, site.url))

    assert await interruption(site.service) is None


async def test_a_diagnosis_that_fails_says_nothing_of_reception(
    make_site: SiteFactory, telegram, anna
):
    telegram.fail_next("getWebhookInfo", 502, "Bad Gateway", times=1_000_000)
    site = await make_site("webhook", jobs=SOON)
    subscriber = await site.subscribe(anna)
    asked = len(telegram.calls_of("getWebhookInfo"))
    await until(lambda: _asked(telegram, asked + 10))

    assert subscriber
    assert await interruption(site.service) is None


@pytest.mark.parametrize(("age_s", "ok"), [(5, False), (3600, True)])
async def test_a_failure_of_long_ago_says_nothing_of_now(make_channel, age_s, ok):
    url = "http://127.0.0.1:9/hooks/messenger_a"
    async with FakeTelegram(retry_s=600) as telegram:
        channel = make_channel(base_url=telegram.url, token=telegram.bot.token, receiving="webhook")
        await telegram.person("Anna").start()
        await channel.set_webhook(url, "s")

        async def called() -> bool:
            return bool(telegram.bot.updates.webhook.last_error)

        await until(called)
        telegram.bot.updates.webhook.last_error_at -= age_s

        found = await channel.check_webhook(url)

    assert found.ok is ok


async def _is_set(telegram, url: str) -> bool:
    return bool(telegram.bot.updates.webhook.url.startswith(url))


async def _asked(telegram, times: int) -> bool:
    return len(telegram.calls_of("getWebhookInfo")) >= times
