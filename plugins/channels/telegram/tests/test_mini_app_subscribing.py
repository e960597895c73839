"""Subscribing in a mini app, from what Telegram gives its page to a message in the chat."""

import json
import time
from typing import Any

import httpx2
import pytest

from msgsvc_devkit import settled
from msgsvc_devkit.platforms.telegram import FakeTelegram
from plugins.channels.telegram.tests.conftest import Site, SiteFactory
from plugins.channels.telegram.tests.test_mini_app import signed

PATH = "/v1/subscribers/mini-app"


@pytest.fixture
async def site(make_site: SiteFactory) -> Site:
    return await make_site("poll")


async def opened(site: Site, init_data: str, **body: Any) -> httpx2.Response:
    return await site.client.post(
        PATH, json={"channel": "messenger_a", "init_data": init_data, **body}
    )


async def test_who_opens_the_mini_app_is_subscribed_and_written_to(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person("Anna", username="anna_k", lang="ru")
    await anna.start()
    answer = await opened(site, anna.open_mini_app(), tags=["vip"], external_id="customer-1")

    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown.pop("created") is True
    assert shown == (await site.client.get(f"/v1/subscribers/{shown['subscriber_id']}")).json()
    assert (shown["first_name"], shown["username"], shown["lang"]) == ("Anna", "anna_k", "ru")
    assert (shown["tags"], shown["external_id"]) == (["vip"], "customer-1")
    (created,) = await site.events("subscription.created")
    assert (created["source"], created["subscriber_id"]) == ("mini_app", shown["subscriber_id"])

    await site.post("/v1/send", subscriber_id=shown["subscriber_id"], text="Your table is ready")
    await anna.wait_for("Your table is ready")


async def test_the_same_data_twice_subscribes_once(site: Site, telegram: FakeTelegram) -> None:
    init_data = telegram.person("Anna").open_mini_app()
    first, second = [(await opened(site, init_data)).json() for _ in range(2)]

    assert (first.pop("created"), second.pop("created")) == (True, False)
    assert first["subscriber_id"] == second["subscriber_id"]
    assert len(await site.events("subscription.created")) == 1


async def test_who_left_is_subscribed_again_by_the_mini_app(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person("Anna")
    subscriber_id = (await opened(site, anna.open_mini_app())).json()["subscriber_id"]
    await site.client.delete(f"/v1/subscribers/{subscriber_id}")
    again = (await opened(site, anna.open_mini_app())).json()

    assert (again["subscriber_id"], again["status"], again["created"]) == (
        subscriber_id,
        "active",
        True,
    )


def signed_at(telegram: FakeTelegram, seconds_ago: float) -> str:
    user = {"id": 1001, "first_name": "Anna"}
    fields = {"user": json.dumps(user), "auth_date": str(int(time.time() - seconds_ago))}
    return signed(telegram.bot.token, fields)


async def test_data_of_within_a_day_is_taken(site: Site, telegram: FakeTelegram) -> None:
    assert (await opened(site, signed_at(telegram, 23 * 3600))).status_code == 200


async def test_data_of_more_than_a_day_ago_is_refused(site: Site, telegram: FakeTelegram) -> None:
    answer = await opened(site, signed_at(telegram, 25 * 3600))

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert answer.json()["error"].startswith("init_data: signed more than 24 hours ago")


async def test_data_that_was_changed_or_is_of_another_bot_is_refused(
    site: Site, telegram: FakeTelegram
) -> None:
    anna = telegram.person("Anna")
    foreign = telegram.add_bot("other_bot").person("Anna").open_mini_app()
    for init_data in (anna.open_mini_app().replace("Anna", "Eve"), foreign, "", "rubbish"):
        answer = await opened(site, init_data)

        assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
        assert answer.json()["error"].startswith("init_data: ")
    assert (await site.client.get("/v1/subscribers")).json()["data"] == []


async def test_an_own_bot_has_a_mini_app_of_its_own(
    make_site: SiteFactory, telegram: FakeTelegram
) -> None:
    operators = {"settings": {"telegram": {"base_url": telegram.url}}}
    site = await make_site("poll", own_channels=operators)
    own = telegram.add_bot("shop_bot")
    settings = {"token": own.token, "receiving": "poll"}
    await site.post("/v1/channels", name="shop", plugin="telegram", settings=settings)
    anna = own.person("Anna")
    answer = await opened(site, anna.open_mini_app(), channel="shop")

    assert answer.status_code == 200, answer.text
    assert answer.json()["channel"] == "shop"
    refused = await opened(site, telegram.person("Eve").open_mini_app(), channel="shop")
    assert refused.json()["error"].startswith("init_data: ")
    await settled(site.service)
