"""The core's commands over MAX: /stop, /settings and /lang, over real HTTP."""

from typing import Any

import pytest

from msgsvc_devkit import until
from msgsvc_devkit.platforms.max import FakeMax, Person

from .conftest import SETUPS, Shop

pytestmark = pytest.mark.parametrize(
    ("backend", "runner", "receiving"), SETUPS[:4], indirect=["backend", "runner"]
)


@pytest.fixture
async def boris(shop: Shop, platform: FakeMax) -> Person:
    """Whose messenger is Russian; a subscriber of a project that asks for one permission."""
    permission = {"key": "sales", "title": {"en": "Sales", "ru": "Распродажи"}}
    assert (await shop.client.post("/v1/permissions", json=permission)).status_code == 201
    boris = platform.person("Борис", username="boris", locale="ru")
    await shop.subscribe(boris)
    await boris.wait_for("Вы подписаны")
    return boris


async def subscriber(shop: Shop) -> dict[str, Any]:
    [found] = (await shop.client.get("/v1/subscribers")).json()["data"]
    return dict(found)


async def test_a_person_leaves_by_stop_and_comes_back_by_start(shop: Shop, boris: Person) -> None:
    await boris.write("/stop")
    await boris.wait_for("Вы отписаны от «Shop»")
    left = (await shop.event("subscription.deleted"))["reason"], (await subscriber(shop))["status"]

    await boris.write("/start")

    async def back() -> bool:
        return len(await shop.events("subscription.created")) == 2

    await until(back, interval_s=0.05)
    assert left == ("stop", "unsubscribed")
    assert (await subscriber(shop))["status"] == "active"


async def test_a_person_turns_a_permission_on_in_the_settings(shop: Shop, boris: Person) -> None:
    await boris.write("/settings")
    settings = await boris.wait_for(button="☐ Распродажи: выкл.")

    await boris.press("☐ Распродажи: выкл.")
    changed = await shop.event("subscription.permission_changed")
    shown = await boris.wait_for(button="☑ Распродажи: вкл.")

    assert (changed["permission"], changed["granted"]) == ("sales", True)
    assert shown.mid == settings.mid


async def test_the_bots_menu_shows_the_commands(shop: Shop, platform: FakeMax) -> None:
    async def filled() -> bool:
        return bool(platform.menu)

    await until(filled)

    assert list(platform.menu) == ["settings", "lang", "stop", "help"]
    assert platform.menu["stop"] == "unsubscribe"


async def test_a_person_chooses_a_language_and_is_answered_in_it(shop: Shop, boris: Person) -> None:
    await boris.write("/lang")
    await boris.wait_for(button="English")
    await boris.press("English")
    await boris.wait_for("You will now get messages in English.")

    await boris.write("/stop")

    await boris.wait_for("You are unsubscribed from Shop.")
    assert (await subscriber(shop))["lang"] == "en"
