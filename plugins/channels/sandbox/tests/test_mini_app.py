"""The sandbox's mini apps, for trying out POST /v1/subscribers/mini-app."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.platforms.sandbox import Sandbox
from msgsvc_sandbox import plugin

PATH = "/v1/subscribers/mini-app"


@pytest.fixture
async def service(make_service: Any) -> Service:
    return await make_service(
        extra_plugins=[("sandbox", plugin)],
        channels={name: {"plugin": "sandbox"} for name in ("messenger_a", "messenger_b")},
    )


async def test_a_person_subscribes_in_a_mini_app_and_is_written_to(
    service: Service, client: httpx2.AsyncClient
) -> None:
    anna = await Sandbox.in_process(service).person("Anna", username="anna", lang="ru")
    await anna.start("messenger_a")
    body = {"channel": "messenger_a", "init_data": await anna.open_mini_app("messenger_a")}
    answer = await client.post(PATH, json={**body, "tags": ["mini-app"]})
    await client.post(
        "/v1/send", json={"subscriber_id": answer.json()["subscriber_id"], "text": "Welcome in"}
    )
    await settled(service)

    shown = answer.json()
    assert (shown["first_name"], shown["username"], shown["lang"]) == ("Anna", "anna", "ru")
    assert (shown["tags"], shown["created"]) == (["mini-app"], True)
    await anna.wait_for(text="Welcome in")


async def test_data_for_one_bot_is_worth_nothing_at_another(
    service: Service, client: httpx2.AsyncClient
) -> None:
    anna = await Sandbox.in_process(service).person("Anna")
    body = {"channel": "messenger_b", "init_data": await anna.open_mini_app("messenger_a")}
    answer = await client.post(PATH, json=body)

    assert answer.json()["error"].startswith("init_data: the sandbox did not sign this")


async def test_data_is_worth_nothing_after_a_day(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    anna = await Sandbox.in_process(service).person("Anna")
    body = {"channel": "messenger_a", "init_data": await anna.open_mini_app("messenger_a")}
    clock.advance(24 * 3600)
    taken = await client.post(PATH, json=body)
    clock.advance(1)
    refused = await client.post(PATH, json=body)

    assert taken.status_code == 200
    assert refused.json()["error"].startswith("init_data: signed more than 24 hours ago")


async def test_the_page_is_given_its_data_over_http(
    service: Service, client: httpx2.AsyncClient
) -> None:
    anna = await Sandbox.in_process(service).person("Anna")
    path = f"/sandbox/api/people/{anna.person_id}/chats/messenger_a/mini-app"
    answer = await client.get(path, headers={"Host": "localhost"}, params={"payload": "from_ad"})

    opened = service.channels["messenger_a"].verify_mini_app(answer.json()["init_data"])
    assert (opened.user.user_id, opened.start_payload) == (anna.person_id, "from_ad")
