"""Subscribing in a mini app, from what MAX gives its page to a message in the dialog."""

import httpx2
import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.max import FakeMax, Person
from msgsvc_max import plugin

from .conftest import MEDIA

PATH = "/v1/subscribers/mini-app"


@pytest.fixture
async def service(platform: FakeMax, make_service: ServiceFactory) -> Service:
    return await make_service(
        extra_plugins=[("max", plugin)],
        channels={"messenger_a": platform.settings},
        media=MEDIA,
        use_clock=SystemClock(),
    )


async def test_who_has_started_the_bot_is_subscribed_in_the_mini_app_and_written_to(
    service: Service, client: httpx2.AsyncClient, platform: FakeMax, ann: Person
) -> None:
    async def knows_chat() -> bool:
        async with service.db.read() as tx:
            return bool(await tx.fetch_all("SELECT chat_id FROM core_chats"))

    await until(knows_chat)
    body = {"channel": "messenger_a", "init_data": platform.init_data(ann)}
    answer = await client.post(PATH, json=body)

    assert answer.status_code == 200, answer.text
    assert (answer.json()["first_name"], answer.json()["created"]) == ("Ann", True)
    message = {"subscriber_id": answer.json()["subscriber_id"], "text": "Your table is ready"}
    await client.post("/v1/send", json=message)
    await settled(service)
    assert "Your table is ready" in [message.text for message in ann.messages]


async def test_whose_dialog_is_not_known_is_to_start_the_bot_first(
    service: Service, client: httpx2.AsyncClient, platform: FakeMax
) -> None:
    ben = platform.person("Ben")
    body = {"channel": "messenger_a", "init_data": platform.init_data(ben)}
    answer = await client.post(PATH, json=body)

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "have them start it first" in answer.json()["error"]
    assert (await client.get("/v1/subscribers")).json()["data"] == []


async def test_data_of_another_bot_is_refused(
    service: Service, client: httpx2.AsyncClient, platform: FakeMax, ann: Person
) -> None:
    body = {"channel": "messenger_a", "init_data": platform.init_data(ann, token="another")}
    answer = await client.post(PATH, json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert answer.json()["error"].startswith("init_data: ")
