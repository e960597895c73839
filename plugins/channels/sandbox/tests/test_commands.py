"""The core's commands in this messenger: a person leaves, chooses, and is answered in Russian."""

from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson


@pytest.fixture
async def boris(sandbox: Sandbox, tenant: Tenant) -> SandboxPerson:
    """A subscriber of a project that asks for one permission."""
    permission = {"key": "sales", "title": {"en": "Sales", "ru": "Распродажи"}}
    assert (await tenant.client.post("/v1/permissions", json=permission)).status_code == 201
    boris = await sandbox.person("Борис", lang="ru")
    links = (await tenant.client.post("/v1/subscribers/links", json={})).json()["links"]
    await boris.open(links["messenger_a"])
    await boris.wait_for(text="Вы подписаны")
    return boris


async def subscriber(tenant: Tenant) -> dict[str, object]:
    [found] = (await tenant.client.get("/v1/subscribers")).json()["data"]
    return dict(found)


async def test_stop_unsubscribes_and_start_subscribes_again(
    boris: SandboxPerson, tenant: Tenant
) -> None:
    await boris.say("/stop", channel="messenger_a")
    await boris.wait_for(text="Вы отписаны от «Shop»")
    left = (await subscriber(tenant))["status"]

    await boris.start("messenger_a")

    assert (left, (await subscriber(tenant))["status"]) == ("unsubscribed", "active")


async def test_settings_turn_a_permission_on_in_place(boris: SandboxPerson, tenant: Tenant) -> None:
    await boris.say("/settings", channel="messenger_a")
    settings = await boris.wait_for(button="☐ Распродажи: выкл.")

    await boris.press("☐ Распродажи: выкл.")

    changed = await boris.wait_for(button="☑ Распродажи: вкл.")
    assert changed.ref == settings.ref
    assert (await subscriber(tenant))["permissions"] == ["sales"]


async def test_lang_is_followed_from_then_on(boris: SandboxPerson, tenant: Tenant) -> None:
    await boris.say("/lang", channel="messenger_a")
    await boris.wait_for(button="English")

    await boris.press("English")
    await boris.wait_for(text="You will now get messages in English.")
    await boris.say("/stop", channel="messenger_a")

    await boris.wait_for(text="You are unsubscribed from Shop.")
    assert (await subscriber(tenant))["lang"] == "en"


async def test_who_hears_from_two_projects_is_asked_by_buttons(
    service: Service,
    boris: SandboxPerson,
    tenant: Tenant,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> None:
    news = await make_tenant(service, "News")
    links = (await news.client.post("/v1/subscribers/links", json={})).json()["links"]
    await boris.open(links["messenger_a"])
    await boris.wait_for(text="Вы подписаны на уведомления от «News».")
    await boris.say("/stop", channel="messenger_a")
    await boris.wait_for(button="От всех")

    await boris.press("News")

    await boris.wait_for(text="Вы отписаны от «News».")
    assert [(await subscriber(one))["status"] for one in (tenant, news)] == [
        "active",
        "unsubscribed",
    ]
