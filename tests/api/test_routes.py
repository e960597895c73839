"""Routes: what may be kept, and whom they reach."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.routing import Routes
from msgsvc_core.routing.models import UpdateRouteBody
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError
from tests.api.subscribing import Subscribe

NIGHT = {"from": "22:00", "to": "06:00", "timezone": "Europe/Berlin"}
URGENT: dict[str, Any] = {
    "name": "Urgent",
    "steps": [{"channel": "messenger_a", "within_seconds": 60}, {"channel": "messenger_b"}],
}
STEP = {"until": "sent", "within_seconds": None, "hours": None, "on_unknown": "stop"}

A, B = {"channel": "messenger_a"}, {"channel": "messenger_b"}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": ""}, "name: "),
    "a name of spaces": ({"name": " "}, "name: must be printable"),
    "no steps": ({"steps": []}, "steps: "),
    "an unknown channel": (
        {"steps": [A, {"channel": "sms"}]},
        "steps[1].channel: must be one of messenger_a, messenger_b",
    ),
    "a channel twice": ({"steps": [A, B, A]}, "steps[2].channel: messenger_a is in an earlier"),
    "what the channel does not report": (
        {"steps": [{**A, "until": "read", "within_seconds": 60}, B]},
        "steps[0].until: messenger_a does not report that a message was read",
    ),
    "no end of waiting": (
        {"steps": [{**A, "until": "answered"}, B]},
        "steps[0].within_seconds: say how long to wait",
    ),
    "too short a wait": ({"steps": [{**A, "within_seconds": 4}]}, "steps[0].within_seconds: "),
    "too long a wait": (
        {"steps": [{**A, "within_seconds": 86_401}]},
        "steps[0].within_seconds: must be at most 86400",
    ),
    "hours that are none": (
        {"steps": [{**A, "hours": {"from": "08:00", "to": "08:00"}}]},
        "steps[0].hours: from and to must differ",
    ),
    "no such hour": (
        {"steps": [{**A, "hours": {"from": "24:00", "to": "08:00"}}]},
        "steps[0].hours.from: ",
    ),
    "no such time zone": (
        {"steps": [{**A, "hours": {**NIGHT, "timezone": "Mars/Base"}}]},
        "steps[0].hours.timezone: there is no such time zone",
    ),
    "six steps": ({"steps": [A, B, A, B, A, B]}, "steps: must be at most 5"),
}


async def create(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/routes", json={**URGENT, **body})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


@pytest.mark.both_databases
async def test_a_route_is_kept_changed_and_deleted(
    client: httpx2.AsyncClient, clock: FakeClock, check_error: CheckError
) -> None:
    made = await create(client)
    clock.advance(5)
    night = [{**B, "hours": NIGHT, "until": "answered", "on_unknown": "continue"}]
    path = f"/v1/routes/{made['route_id']}"

    changed = (await client.patch(path, json={"steps": night})).json()
    renamed = (await client.patch(path, json={"name": "At night"})).json()

    assert made["steps"] == [{**STEP, **A, "within_seconds": 60}, {**STEP, **B}]
    assert changed["steps"] == [{**STEP, **night[0]}]
    assert renamed == {**changed, "name": "At night"}
    assert changed["updated_at"] > made["updated_at"] == made["created_at"]
    assert (await client.get(path)).json() == renamed
    assert (await client.delete(path)).status_code == 204
    check_error(await client.get(path), 404, "not_found")
    check_error(await client.delete(path), 404, "not_found")


@pytest.mark.both_databases
async def test_routes_are_listed_newest_first(client: httpx2.AsyncClient) -> None:
    ids = [(await create(client, name=name))["route_id"] for name in ("One", "Two", "Three")]

    first = (await client.get("/v1/routes?limit=2")).json()
    rest = (await client.get(f"/v1/routes?limit=2&cursor={first['next_cursor']}")).json()

    assert [each["route_id"] for each in first["data"]] == ids[:0:-1]
    assert [each["route_id"] for each in rest["data"]] == ids[:1]
    assert rest["next_cursor"] is None


@pytest.mark.shared_service
@pytest.mark.parametrize("case", REFUSED)
async def test_a_wrong_route_is_refused_with_its_field(
    client: httpx2.AsyncClient, case: str, check_error: CheckError
) -> None:
    body, error = REFUSED[case]

    refused = check_error(
        await client.post("/v1/routes", json={**URGENT, **body}), 400, "validation_failed"
    )

    assert refused["error"].startswith(error)


@pytest.mark.both_databases
async def test_a_name_is_one_routes_alone(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await create(client)
    other = await create(client, name="Other")

    again = await client.post("/v1/routes", json=URGENT)
    renamed = await client.patch(f"/v1/routes/{other['route_id']}", json={"name": "Urgent"})

    assert "'Urgent'" in check_error(again, 409, "conflict")["error"]
    assert "'Urgent'" in check_error(renamed, 409, "conflict")["error"]


async def test_a_project_has_so_many_routes_and_no_more(
    make_service: ServiceFactory, make_tenant: Any, check_error: CheckError
) -> None:
    service = await make_service(limits={"routes": 2, "requests_per_minute": 1000})
    tenant: Tenant = await make_tenant(service)
    await create(tenant.client, name="One")
    await create(tenant.client, name="Two")

    third = await tenant.client.post("/v1/routes", json=URGENT)

    assert "at most 2 routes" in check_error(third, 409, "conflict")["error"]
    assert len((await tenant.client.get("/v1/routes")).json()["data"]) == 2


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_change_of_what_was_changed_meanwhile_is_refused(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant
) -> None:
    made, project_id = await create(client), tenant.project.project_id
    await client.patch(f"/v1/routes/{made['route_id']}", json={"name": "First"})
    body = UpdateRouteBody(name="Second")

    async with service.db.transaction() as tx:
        with pytest.raises(Conflict, match="changed meanwhile"):
            await service.get(Routes).update(tx, project_id, made["route_id"], body, version=1)

    assert (await client.get(f"/v1/routes/{made['route_id']}")).json()["name"] == "First"


@pytest.mark.both_databases
async def test_a_route_reaches_a_person_where_they_can_be_written_to(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant, subscribe: Subscribe
) -> None:
    await client.post("/v1/permissions", json={"key": "news", "title": "News"})
    ann_a = await subscribe("Ann", external_id="ann")
    ann_b = await subscribe("Ann", channel="messenger_b", permissions=["news"])
    await client.patch(f"/v1/subscribers/{ann_b}", json={"external_id": "ann"})
    route_id, project_id = (await create(client))["route_id"], tenant.project.project_id
    chooser, now_ms = service.get(Routes).chooser, service.clock.now_ms()
    async with service.db.read() as tx:
        route = await service.get(Routes).get(tx, project_id, route_id)

    both = await chooser.choose(project_id, route.steps, external_id="ann", now_ms=now_ms)
    granted = await chooser.choose(
        project_id, route.steps, subscriber_id=ann_a, now_ms=now_ms, permission="news"
    )
    async with service.db.transaction() as tx:
        bot = service.channels["messenger_b"]
        await service.get(ChannelStates).stop(tx, bot, "bot_banned", "Banned")
        stopped = await chooser.choose(
            project_id, route.steps, external_id="ann", now_ms=now_ms, tx=tx
        )

    assert [each.recipient.subscriber_id for each in both.candidates] == [ann_a, ann_b]
    assert [each.recipient.subscriber_id for each in granted.candidates] == [ann_b]
    assert [each.reason for each in granted.skipped] == ["no_permission"]
    assert [each.recipient.subscriber_id for each in stopped.candidates] == [ann_a]
    assert [each.reason for each in stopped.skipped] == ["channel_stopped"]
