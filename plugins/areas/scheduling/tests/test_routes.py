"""Scheduled and recurring messages by a route."""

import json
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel
from msgsvc_devkit.fixtures import Tenant

from .conftest import LATER, AddPeople, pass_time, refusal

pytestmark = pytest.mark.both_databases


@pytest.fixture
async def route(people: AddPeople, service: Service, tenant: Tenant) -> str:
    """A route over two channels, on both of which Ann is."""
    await people(1, external_id="ann")
    second: dict[str, Any] = {"channel": "messenger_b", "bot": "messenger_b"}
    await people(1, external_id="ann", subscriber_id="sub_b", **second)
    steps = [{"channel": "messenger_a"}, {"channel": "messenger_b"}]
    answer = await tenant.client.post("/v1/routes", json={"name": "All", "steps": steps})
    return str(answer.json()["route_id"])


def texts_of(service: Service) -> list[list[str]]:
    channels = [service.channels[name] for name in ("messenger_a", "messenger_b")]
    return [channel.texts for channel in channels if isinstance(channel, RecordingChannel)]


async def test_a_scheduled_message_goes_by_its_route_at_its_time(
    service: Service, tenant: Tenant, route: str, channel: RecordingChannel, clock: FakeClock
) -> None:
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "send_at": LATER}
    answer = await tenant.client.post("/v1/scheduled", json=body)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    path = f"/v1/scheduled/{made['scheduled_id']}"
    await tenant.client.patch(path, json={"text": "Hi there"})
    channel.failures = [DeliveryError(Reason.INVALID_MESSAGE, "not here")]
    await pass_time(service, clock, 3700)
    sent = (await tenant.client.get(path)).json()
    message = (await tenant.client.get(f"/v1/messages/{sent['message_id']}")).json()

    assert (made["route_id"], made["message"]) == (route, {"text": "Hi"})
    assert (sent["status"], sent["route_id"]) == ("sent", route)
    assert texts_of(service) == [[], ["Hi there"]]
    assert (message["status"], message["channel"]) == ("sent", "messenger_b")


async def test_a_stored_message_calls_its_route_as_it_always_did(
    service: Service, tenant: Tenant, route: str
) -> None:
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "send_at": LATER}
    made = (await tenant.client.post("/v1/scheduled", json=body)).json()
    async with service.db.read() as tx:
        stored = await tx.fetch_val("SELECT message FROM scheduling_records", {})
    shown = (await tenant.client.get(f"/v1/scheduled/{made['scheduled_id']}")).json()

    assert json.loads(stored) == {"text": "Hi", "route": route}
    assert (shown["route_id"], shown["message"]) == (route, {"text": "Hi"})


async def test_a_recurring_message_goes_by_its_route_each_time(
    service: Service, tenant: Tenant, route: str, clock: FakeClock
) -> None:
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "every": {"hours": 1}}
    answer = await tenant.client.post("/v1/recurring", json=body)
    assert answer.status_code == 201, answer.text
    for _ in range(2):
        await pass_time(service, clock, 3600)

    assert answer.json()["route_id"] == route
    assert texts_of(service) == [["Hi", "Hi"], []]


async def test_what_no_step_reaches_at_its_time_is_skipped(
    service: Service, tenant: Tenant, route: str, clock: FakeClock
) -> None:
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "send_at": LATER}
    made = (await tenant.client.post("/v1/scheduled", json=body)).json()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_subscribers SET status = 'blocked'", {})
    await pass_time(service, clock, 3700)
    shown = (await tenant.client.get(f"/v1/scheduled/{made['scheduled_id']}")).json()

    assert (shown["status"], shown["reason"]) == ("skipped", "conflict")
    assert "messenger_b: blocked" in shown["error"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"channel": "messenger_a"}, 400),
        ({"audience": {"all": True}}, 400),
        ({"subscriber_id": "sub_b"}, 400),
        ({"route_id": "rte_none"}, 404),
    ],
)
async def test_a_route_is_for_one_person_by_external_id(
    tenant: Tenant, route: str, fields: dict[str, Any], status: int
) -> None:
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "send_at": LATER, **fields}
    answer = await tenant.client.post("/v1/scheduled", json=body)

    assert refusal(answer)[0] == status


async def test_it_may_be_made_and_changed_while_no_step_reaches_the_person(
    service: Service, tenant: Tenant, route: str, channel: RecordingChannel, clock: FakeClock
) -> None:
    # Both steps are outside their hours now, and within them at the time.
    now = (await tenant.client.get(f"/v1/routes/{route}")).json()
    hours = {"from": "13:00", "to": "23:00"}
    steps = [{"channel": step["channel"], "hours": hours} for step in now["steps"]]
    changed = await tenant.client.patch(f"/v1/routes/{route}", json={"steps": steps})
    assert changed.status_code == 200, changed.text
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "send_at": LATER}
    made = await tenant.client.post("/v1/scheduled", json=body)
    path = f"/v1/scheduled/{made.json()['scheduled_id']}"
    again = await tenant.client.patch(path, json={"text": "Hi there"})
    await pass_time(service, clock, 3700)

    assert (made.status_code, again.status_code) == (201, 200)
    assert texts_of(service)[0] == ["Hi there"]


async def test_another_route_is_given_to_what_waits_and_taken_away(
    service: Service, tenant: Tenant, route: str, clock: FakeClock
) -> None:
    steps = [{"channel": "messenger_b"}]
    other = await tenant.client.post("/v1/routes", json={"name": "Other", "steps": steps})
    body = {"external_id": "ann", "route_id": route, "text": "Hi", "send_at": LATER}
    paths = []
    for _ in range(2):
        made = await tenant.client.post("/v1/scheduled", json=body)
        paths.append(f"/v1/scheduled/{made.json()['scheduled_id']}")
    changed = await tenant.client.patch(paths[0], json={"route_id": other.json()["route_id"]})
    none = await tenant.client.patch(paths[1], json={"route_id": None})
    refused = await tenant.client.patch(paths[1], json={"route_id": "rte_none"})
    await pass_time(service, clock, 3700)

    assert changed.json()["route_id"] == other.json()["route_id"]
    assert (none.json()["route_id"], refused.status_code) == (None, 404)
    sent = [(await tenant.client.get(path)).json()["status"] for path in paths]
    assert sent == ["sent", "sent"]
    assert "Hi" in texts_of(service)[1]


async def test_an_audience_is_reached_by_a_route_each_person_once(
    service: Service, tenant: Tenant, route: str, clock: FakeClock
) -> None:
    body = {"audience": {"all": True}, "route_id": route, "text": "Hi", "every": {"hours": 1}}
    made = await tenant.client.post("/v1/recurring", json=body)
    await pass_time(service, clock, 3600)

    assert made.status_code == 201, made.text
    assert texts_of(service) == [["Hi"], []]
