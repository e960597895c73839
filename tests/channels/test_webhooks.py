"""Bots whose platform calls us: told once where, and believed by their secret alone."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.services import SECRET_KEY
from tests.channels.conftest import AddBot
from tests.channels.messenger import SECRET_HEADER, Bot, Platform, started
from tests.channels.test_own_bots import link_of, subscribers_of

NEW_KEY = "another-key-for-tests-only-another-key"


@pytest.fixture
def settings(settings: dict[str, Any]) -> dict[str, Any]:
    bot = {"plugin": "fake", "token": "shared", "receiving": "webhook"}
    return {**settings, "channels": {"messenger_a": bot}}


async def told(bot: Bot, times: int = 1) -> list[tuple[str, str]]:
    """The addresses and secrets that the platform was told."""

    async def enough() -> bool:
        return len(bot.webhooks) >= times

    await until(enough)
    return bot.webhooks


async def call(
    client: httpx2.AsyncClient, bot: Bot, payload: str, update_id: str = "u1", **headers: str
) -> httpx2.Response:
    """The platform calls the address that it was told, with the secret unless `headers` has one."""
    url, secret = bot.webhooks[-1]
    body = json.dumps({"update_id": update_id, "payload": payload})
    headers = headers or {SECRET_HEADER: secret}
    return await client.post(httpx2.URL(url).path, content=body, headers=headers)


@pytest.mark.database_file
async def test_the_platform_is_told_once_by_processes_that_start_together(
    make_service: ServiceFactory, platform: Platform, settings: dict[str, Any]
) -> None:
    first = await make_service(extra_plugins=[("fake", platform)], start=False, **settings)
    url = first.settings.database_url
    others = [
        await make_service(
            extra_plugins=[("fake", platform)], start=False, database_url=url, **settings
        )
        for _ in range(2)
    ]
    services = [first, *others]
    if first.db.dialect == "sqlite":
        await first.migrate()
    await asyncio.gather(*(service.start() for service in services))
    try:
        webhooks = await told(platform.bots["shared"])

        async def all_know() -> bool:
            return all(service.channels["messenger_a"].profile for service in services)

        await until(all_know)
    finally:
        # The next takes over, and knows that the platform has just been told.
        for service in services:
            await service.stop()

    [(address, secret)] = webhooks
    assert address == "http://127.0.0.1:8000/hooks/messenger_a"
    assert address == first.channels.hook_url(first.channels["messenger_a"])
    assert len(secret) == 64


async def test_the_platform_is_told_again_until_it_listens(
    make_service: ServiceFactory, platform: Platform, settings: dict[str, Any]
) -> None:
    bot = platform.bots["shared"]
    bot.away = True
    await make_service(extra_plugins=[("fake", platform)], **settings)

    async def asked() -> bool:
        return bot.checks > 0

    await until(asked)
    refused = list(bot.webhooks)
    bot.away = False

    assert refused == []
    assert len(await told(bot)) == 1


@pytest.mark.parametrize("change", ["a new secret key", "a new address", "a later start"])
async def test_the_platform_is_told_again_after(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    clock: FakeClock,
    change: str,
) -> None:
    bot = platform.bots["shared"]
    await told(bot)
    await service.stop()
    shared = {**settings, "database_url": service.settings.database_url}
    if change == "a new secret key":
        shared["secret_keys"] = (NEW_KEY, SECRET_KEY)
    elif change == "a new address":
        shared["base_url"] = "https://msgsvc.example"
    else:
        clock.advance(3600)

    await make_service(extra_plugins=[("fake", platform)], **shared)
    first, second = await told(bot, 2)

    assert (first == second) is (change == "a later start")


async def test_a_secret_of_the_older_key_is_believed_until_the_platform_knows_the_new_one(
    service: Service,
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    platform: Platform,
    settings: dict[str, Any],
) -> None:
    bot = platform.bots["shared"]
    [(_, old)] = await told(bot)
    shared = {**settings, "database_url": service.settings.database_url}
    beside = await make_service(
        extra_plugins=[("fake", platform)], **shared, secret_keys=(NEW_KEY, SECRET_KEY)
    )
    tenant = await make_tenant(beside)

    answer = await call(tenant.client, bot, "", **{SECRET_HEADER: old})

    assert answer.status_code == 200


@pytest.mark.parametrize("headers", [{SECRET_HEADER: "0" * 64}, {"x-other": "1"}])
async def test_a_call_without_the_secret_has_no_effect(
    tenant: Tenant,
    service: Service,
    platform: Platform,
    add_bot: AddBot,
    check_error: Any,
    headers: dict[str, str],
) -> None:
    await add_bot("own_bot", receiving="webhook")
    await told(platform.bots["own"])
    payload = await link_of(tenant, "own_bot")

    refused = await call(tenant.client, platform.bots["own"], payload, **headers)

    check_error(refused, 401, "unauthorized")
    assert await subscribers_of(tenant) == []
    async with service.db.read() as tx:
        assert not await tx.fetch_all("SELECT * FROM core_updates")


async def test_the_secret_of_another_bot_opens_nothing(
    tenant: Tenant, platform: Platform, add_bot: AddBot, check_error: Any
) -> None:
    await add_bot("own_bot", receiving="webhook")
    await add_bot("other_bot", token="other", receiving="webhook")
    await told(platform.bots["own"])
    [(_, other)] = await told(platform.bots["other"])

    refused = await call(tenant.client, platform.bots["own"], "", **{SECRET_HEADER: other})

    check_error(refused, 401, "unauthorized")


async def test_the_same_update_five_times_has_one_effect(
    tenant: Tenant, service: Service, platform: Platform, add_bot: AddBot
) -> None:
    await add_bot("own_bot", receiving="webhook")
    bot = platform.bots["own"]
    await told(bot)
    payload = await link_of(tenant, "own_bot")

    answers = await asyncio.gather(*(call(tenant.client, bot, payload) for _ in range(5)))
    await settled(service)

    events = (await tenant.client.get("/v1/events")).json()["data"]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert [event["event"] for event in events] == ["subscription.created"]
    assert bot.texts == ["You are subscribed to notifications from Shop."]


async def test_the_address_of_a_removed_bot_is_gone(
    tenant: Tenant, platform: Platform, add_bot: AddBot, check_error: Any
) -> None:
    await add_bot("own_bot", receiving="webhook")
    await told(platform.bots["own"])
    await tenant.client.delete("/v1/channels/own_bot")

    check_error(await call(tenant.client, platform.bots["own"], ""), 404, "not_found")


async def test_who_goes_over_to_a_webhook_and_back_polls_without_a_cursor(
    tenant: Tenant, platform: Platform, add_bot: AddBot
) -> None:
    """A poll without one is what ends the platform's calls."""
    await add_bot("own_bot", receiving="poll")
    bot = platform.bots["own"]
    bot.bring(started("", update_id="u1"))

    async def change(receiving: str) -> None:
        await tenant.client.patch(
            "/v1/channels/own_bot", json={"settings": {"receiving": receiving}}
        )

    async def polled() -> bool:
        return bool(bot.polls) and not bot.waiting

    await until(polled)
    for times in (1, 2):
        await change("webhook")
        await told(bot, times)
        bot.polls.clear()
        await change("poll")
        await until(polled)

        assert bot.polls[0] is None
