"""What a person says to a project's own bot."""

from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from msgsvc_core.channels import ChannelUser, MessageReceived, Started
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant
from tests.channels.conftest import AddBot
from tests.channels.messenger import Platform

ANN = ChannelUser("7", "Ann", "ann", "en")
SUBSCRIBED = "You are subscribed to notifications from Shop."

Say = Callable[[str], Awaitable[str]]


@pytest.fixture
async def say(service: Service, platform: Platform, add_bot: AddBot) -> Say:
    """Ann says something to the project's own bot, or presses Start with `""`; what it answers."""
    numbers = count(1)
    key = (await add_bot("own_bot"))["channel_id"]

    async def say(text: str) -> str:
        who = {"update_id": f"u{next(numbers)}", "chat_id": "chat-Ann", "user": ANN}
        update = MessageReceived(text=text, **who) if text else Started(**who)
        await service.inbound.receive(key, update)
        await settled(service)
        return platform.bots["own"].texts[-1]

    return say


async def status(tenant: Tenant) -> list[str]:
    found = (await tenant.client.get("/v1/subscribers")).json()["data"]
    return [one["status"] for one in found]


async def test_a_start_subscribes_a_new_person_to_the_bots_project(
    say: Say, tenant: Tenant
) -> None:
    assert await say("") == SUBSCRIBED
    assert await status(tenant) == ["active"]


async def test_who_is_subscribed_is_greeted(say: Say, tenant: Tenant) -> None:
    await say("")

    assert (await say("/start")).startswith(
        "Hello! You are subscribed to notifications from Shop.\n\n/settings"
    )
    assert await status(tenant) == ["active"]


async def test_who_leaves_comes_back_by_start(say: Say, tenant: Tenant) -> None:
    await say("")

    said = await say("/stop")
    left = await status(tenant)

    assert said.startswith("You are unsubscribed from Shop.")
    assert (left, await say("")) == (["unsubscribed"], SUBSCRIBED)
    assert await status(tenant) == ["active"]


async def test_a_disabled_projects_bot_subscribes_nobody(
    say: Say, service: Service, tenant: Tenant
) -> None:
    await service.projects.set_active(tenant.project.project_id, False)

    said = await say("")

    await service.projects.set_active(tenant.project.project_id, True)
    assert said.startswith("Hello! To start, open a link")
    assert await status(tenant) == []
