"""Steps that name a route: the person gets them by the first channel that works."""

import json
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel
from msgsvc_devkit.fixtures import ServiceFactory

from .conftest import HOUR, WITH_DRIP, Shop

pytestmark = pytest.mark.both_databases


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    channels = {name: {"plugin": "recording"} for name in ("messenger_a", "messenger_b")}
    return await make_service(**WITH_DRIP, channels=channels)


def other(shop: Shop) -> RecordingChannel:
    found = shop.service.channels["messenger_b"]
    assert isinstance(found, RecordingChannel)
    return found


async def on_both(shop: Shop) -> str:
    """Somebody on both channels; returns their first subscriber."""
    first = await shop.person()
    project_id = (await shop.client.get("/v1/project")).json()["project_id"]
    async with shop.service.db.transaction() as tx:
        await tx.execute("UPDATE core_subscribers SET external_id = 'ann'", {})
        [row] = await tx.fetch_all("SELECT * FROM core_subscribers", {})
        copy = {
            name: value
            for name, value in dict(row).items()
            if name not in {"search_name", "search_username", "search_external_id"}
        }
        await tx.insert(
            "core_subscribers",
            {
                **copy,
                "project_id": project_id,
                "subscriber_id": "sub_other",
                "channel": "messenger_b",
                "bot": "messenger_b",
                "lang": "ru",
                "locale": "ru",
            },
        )
    return first


async def route_of(shop: Shop, *channels: str) -> str:
    body = {"name": "All", "steps": [{"channel": name} for name in channels]}
    answer = await shop.client.post("/v1/routes", json=body)
    return str(answer.json()["route_id"])


async def test_a_step_goes_by_its_route_in_the_language_of_that_channel(shop: Shop) -> None:
    person = await on_both(shop)
    route = await route_of(shop, "messenger_b", "messenger_a")
    steps = [
        {
            "delay": {"hours": 1},
            "message": {"text": {"en": "Hi", "ru": "Привет"}},
            "route_id": route,
        },
        {"delay": {"hours": 1}, "message": {"text": "two"}},
    ]
    drip_id = await shop.chain(steps=steps)
    shown = (await shop.client.get(f"/v1/drips/{drip_id}")).json()
    await shop.enroll(drip_id, person)

    assert await shop.after(HOUR) == []
    assert other(shop).texts == ["Привет"]
    assert await shop.after(HOUR) == ["two"]
    assert shown["steps"][0]["route_id"] == route


async def test_a_stored_step_calls_its_route_as_it_always_did(shop: Shop) -> None:
    route = await route_of(shop, "messenger_b", "messenger_a")
    drip_id = await shop.chain(
        steps=[{"delay": {"hours": 1}, "message": {"text": "Hi"}, "route_id": route}]
    )
    async with shop.service.db.read() as tx:
        stored = await tx.fetch_val("SELECT content FROM drip_versions", {})
    shown = (await shop.client.get(f"/v1/drips/{drip_id}")).json()

    [step] = json.loads(stored)["steps"]
    assert (step["route"], "route_id" in step) == (route, False)
    assert shown["steps"][0]["route_id"] == route


async def test_a_step_goes_on_along_its_route(shop: Shop) -> None:
    person = await on_both(shop)
    route = await route_of(shop, "messenger_b", "messenger_a")
    other(shop).failures = [DeliveryError(Reason.INVALID_MESSAGE, "no such thing")]
    drip_id = await shop.chain(
        steps=[{"delay": {"hours": 1}, "message": {"text": "Hi"}, "route_id": route}]
    )
    await shop.enroll(drip_id, person)

    assert await shop.after(HOUR) == ["Hi"]
    [message] = (await shop.client.get("/v1/messages")).json()["data"]
    assert (message["status"], message["channel"]) == ("sent", "messenger_a")


async def test_a_step_by_a_deleted_route_is_skipped_and_says_why(shop: Shop) -> None:
    person = await on_both(shop)
    route = await route_of(shop, "messenger_b")
    drip_id = await shop.chain(
        steps=[{"delay": {"hours": 1}, "message": {"text": "Hi"}, "route_id": route}]
    )
    await shop.enroll(drip_id, person)
    await shop.client.delete(f"/v1/routes/{route}")

    assert await shop.after(HOUR) == []
    [enrollment] = await shop.enrollments(drip_id)
    assert enrollment["status"] == "completed"
    assert "there is no route" in enrollment["reason"]


async def test_a_person_who_is_enrolled_twice_gets_a_routed_step_once(shop: Shop) -> None:
    """Also the last one, though the first enrollment may have ended by then."""
    person = await on_both(shop)
    route = await route_of(shop, "messenger_b", "messenger_a")
    step = {"delay": {"hours": 1}, "route_id": route}
    steps = [{**step, "message": {"text": text}} for text in ("one", "two")]
    drip_id = await shop.chain(steps=steps)
    first = await shop.enroll(drip_id, person)
    shop.clock.advance(1)
    await shop.enroll(drip_id, "sub_other")

    await shop.after(HOUR)
    await shop.after(HOUR)
    await shop.after(HOUR)

    assert other(shop).texts == ["one", "two"]
    ended = {each["subscriber_id"]: each for each in await shop.enrollments(drip_id)}
    assert ended[person]["reason"] is None
    assert ended["sub_other"]["status"] == "completed"
    assert ended["sub_other"]["reason"] == f"step 2: the person gets it by {first}"


async def test_the_second_enrollment_goes_on_alone_if_the_first_is_cancelled(shop: Shop) -> None:
    person = await on_both(shop)
    route = await route_of(shop, "messenger_b", "messenger_a")
    drip_id = await shop.chain(
        steps=[{"delay": {"hours": 1}, "message": {"text": "Hi"}, "route_id": route}]
    )
    first = await shop.enroll(drip_id, person)
    await shop.enroll(drip_id, "sub_other")
    await shop.client.post(f"/v1/drips/enrollments/{first}/cancel")
    await shop.after(HOUR)

    assert other(shop).texts == ["Hi"]


async def test_a_campaign_with_an_unknown_route_is_refused(shop: Shop) -> None:
    step = {"delay": {"hours": 1}, "message": {"text": "Hi"}, "route_id": "rte_none"}
    body = {"name": "New", "trigger": {"on": "manual"}, "steps": [step]}
    answer = await shop.client.post("/v1/drips", json=body)

    assert answer.status_code == 404, answer.text
    assert answer.json()["error"].startswith("steps[0]: route_id: ")


async def test_a_step_that_no_channel_of_its_route_carries_is_refused(shop: Shop) -> None:
    second = other(shop)
    second.capabilities = replace(second.capabilities, max_text_length=3)
    step: dict[str, Any] = {"delay": {"hours": 1}, "message": {"text": "Hello"}}
    body = {"name": "New", "trigger": {"on": "manual"}, "steps": [step]}
    by_any = await shop.client.post("/v1/drips", json=body)
    step["route_id"] = await route_of(shop, "messenger_b")
    refused = await shop.client.post("/v1/drips", json={**body, "name": "Other"})

    assert by_any.status_code == 201
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("steps[0]: message: on messenger_b: text: ")
