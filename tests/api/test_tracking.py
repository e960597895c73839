"""What a project tells of its own: POST /v1/events."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from tests.api.conftest import CheckError, Subscribe
from tests.api.test_subscribers import events_of


async def test_what_is_tracked_becomes_an_event_with_the_subscribers_fields(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann", tags=["vip"], external_id="customer-1")
    answer = await client.post(
        "/v1/events",
        json={"subscriber_id": ann, "name": "cart.abandoned", "properties": {"items": [1, "два"]}},
    )

    assert (answer.status_code, list(answer.json())) == (202, ["event_id"])
    newest = (await client.get("/v1/events?limit=1")).json()["data"][0]
    assert newest == {
        "event_id": answer.json()["event_id"],
        "event": "event.tracked",
        "data": {
            "occurred_at": "2026-01-15T12:00:00.000Z",
            "subscriber_id": ann,
            "channel": "messenger_a",
            "first_name": "Ann",
            "username": "ann",
            "lang": "en",
            "tags": ["vip"],
            "external_id": "customer-1",
            "name": "cart.abandoned",
            "properties": {"items": [1, "два"]},
        },
    }


async def test_an_event_may_name_the_subscriber_by_the_projects_own_id(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    people = [await subscribe("Ann", channel=channel) for channel in ("messenger_a", "messenger_b")]
    for one in people:
        await client.patch(f"/v1/subscribers/{one}", json={"external_id": "customer-1"})
    for channel in ("messenger_a", "messenger_b"):
        body = {"external_id": "customer-1", "channel": channel, "name": "bought"}
        assert (await client.post("/v1/events", json=body)).status_code == 202

    tracked = [data for name, data in await events_of(client) if name == "event.tracked"]
    assert [data["subscriber_id"] for data in tracked] == people
    assert [data["properties"] for data in tracked] == [{}, {}]


async def test_an_event_of_who_has_left_is_taken(client: httpx2.AsyncClient, ann: str) -> None:
    await client.delete(f"/v1/subscribers/{ann}")
    answer = await client.post("/v1/events", json={"subscriber_id": ann, "name": "bought"})

    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("change", "status", "code", "message"),
    [
        ({"name": "x" * 65}, 400, "validation_failed", "name: "),
        ({"name": ""}, 400, "validation_failed", "name: "),
        ({"name": "two words"}, 400, "validation_failed", "name: "),
        ({"name": "line\n"}, 400, "validation_failed", "name: "),
        ({"properties": []}, 400, "validation_failed", "properties: "),
        ({"properties": {"a": "x" * 8192}}, 400, "validation_failed", "properties: must be at"),
        ({"subscriber_id": "sub_nobody"}, 404, "subscriber_not_found", "there is no subscriber"),
        ({"external_id": "a"}, 400, "mutually_exclusive_identifiers", "subscriber_id, external"),
        ({"subscriber_id": None}, 400, "validation_failed", "subscriber_id: give it"),
        ({"event": "x"}, 400, "validation_failed", "event: there is no such field"),
    ],
)
async def test_what_cannot_be_tracked_is_refused(
    client: httpx2.AsyncClient,
    ann: str,
    check_error: CheckError,
    change: dict[str, Any],
    status: int,
    code: str,
    message: str,
) -> None:
    answer = await client.post(
        "/v1/events", json={"subscriber_id": ann, "name": "bought", **change}
    )

    assert check_error(answer, status, code)["error"].startswith(message)
    assert [name for name, _ in await events_of(client)] == ["subscription.created"]


async def test_properties_of_8_kib_are_taken(client: httpx2.AsyncClient, ann: str) -> None:
    properties = {"a": "я" * ((8192 - len('{"a":""}')) // 2)}
    body = {"subscriber_id": ann, "name": "bought", "properties": properties}

    assert (await client.post("/v1/events", json=body)).status_code == 202


async def test_an_event_with_the_same_key_is_tracked_once(
    client: httpx2.AsyncClient, ann: str
) -> None:
    body, headers = {"subscriber_id": ann, "name": "bought"}, {"Idempotency-Key": "bought-17"}
    first = await client.post("/v1/events", json=body, headers=headers)
    second = await client.post("/v1/events", json=body, headers=headers)

    assert first.json() == second.json()
    names = [name for name, _ in await events_of(client)]
    assert names.count("event.tracked") == 1


async def test_a_listener_in_the_process_hears_what_is_tracked(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    heard = []

    @service.on("event.tracked")
    async def listen(event: Any) -> None:
        heard.append(event.data["name"])

    await client.post("/v1/events", json={"subscriber_id": ann, "name": "bought"})
    await service.events.stop()
    await service.events.start()

    assert heard == ["bought"]
