"""A service with the fake messenger, whose bots projects can bring."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import check_error  # noqa: F401 - a fixture, used by its name
from tests.channels.messenger import Platform

AddBot = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def platform() -> Platform:
    """The messenger that all services of a test are connected to."""
    return Platform()


@pytest.fixture
def settings() -> dict[str, Any]:
    """Own channels are followed fast, so that tests need not wait."""
    return {
        "own_channels": {"follow_s": 0.02},
        "jobs": {"sweep_s": 0.05, "lease_s": 10},
        "channels": {"messenger_a": {"plugin": "fake", "token": "shared"}},
    }


@pytest.fixture
async def service(
    make_service: ServiceFactory, platform: Platform, settings: dict[str, Any]
) -> Service:
    """A service whose `messenger_a` is the bot with the token `shared`."""
    service = await make_service(extra_plugins=[("fake", platform)], **settings)
    await knows_bot(service, "messenger_a")
    return service


@pytest.fixture
async def beside(
    service: Service, make_service: ServiceFactory, platform: Platform, settings: dict[str, Any]
) -> Service:
    """Another process of the same deployment."""
    url = service.settings.database_url
    return await make_service(extra_plugins=[("fake", platform)], database_url=url, **settings)


@pytest.fixture
def add_bot(service: Service, tenant: Tenant) -> AddBot:
    """`await add_bot("messenger_a", token="own")`; returns the answer once the bot is known."""

    async def add(
        name: str = "messenger_a", to: Tenant = tenant, **settings: Any
    ) -> dict[str, Any]:
        settings = {"token": "own", **settings}
        body = {"name": name, "plugin": "fake", "settings": settings}
        answer = await to.client.post("/v1/channels", json=body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        if settings.get("receiving", "poll") != "nothing":
            await knows_bot(service, made["channel_id"])
        return made

    return add


async def knows_bot(service: Service, key: str) -> None:
    """Returns when a service can make links to a bot, and so can those that read what it has stored."""

    async def known() -> bool:
        channel = await service.channels.find(key)
        if channel is None or channel.profile is None:
            return False
        async with service.db.read() as tx:
            stored = "SELECT profile FROM core_bots WHERE channel = :key"
            return await tx.fetch_val(stored, {"key": key}) is not None

    await until(known)


async def bot_of(service: Service, subscriber_id: str) -> str:
    """The key of the bot by which a subscriber is reached."""
    async with service.db.read() as tx:
        return str(
            await tx.fetch_val(
                "SELECT bot FROM core_subscribers WHERE subscriber_id = :id", {"id": subscriber_id}
            )
        )
