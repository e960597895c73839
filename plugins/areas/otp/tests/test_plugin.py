"""What the plugin brings along: texts, upkeep, errors and events, what it does with those who leave."""

from typing import Any

import httpx2

from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import Tenant
from msgsvc_otp import plugin

from .conftest import ann_of, refusal

DAY_S = 24 * 3600


async def test_events_and_error_codes_are_in_the_catalogues(service: Service) -> None:
    assert {
        "otp.sent",
        "otp.verified",
        "otp.failed_attempt",
        "otp.max_attempts_reached",
    } <= set(service.events.catalogue)
    assert {"otp_invalid", "otp_expired", "otp_max_attempts", "otp_rate_limited"} <= {
        error.code for error in service.errors
    }


async def test_purge_runs_every_hour(service: Service) -> None:
    every_s = {spec.name: spec.every_s for spec in service.job_specs}

    assert every_s["otp.purge"] == 3600


async def test_codes_are_forgotten_a_week_after_they_were_asked_for(
    service: Service, client: httpx2.AsyncClient, send: Any, clock: FakeClock
) -> None:
    old = await send()
    clock.advance(2 * DAY_S)
    # The hourly job has come by; had it only begun, it would be due again an hour after the days below.
    await settled(service)
    young = await send()
    clock.advance(5 * DAY_S + 1)

    async def forgotten() -> bool:
        return (await client.get(f"/v1/otp/{old}")).status_code == 404

    # The job is due; what is left is that the runner notices it.
    await until(forgotten, interval_s=0.05)

    assert (await client.get(f"/v1/otp/{young}")).json()["status"] == "expired"


async def test_erased_person_takes_their_codes_along(
    service: Service, client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any, verify: Any
) -> None:
    otp_id = await send()

    await client.delete(f"/v1/subscribers/{ann_id}?erase=true")
    await settled(service)

    assert (await client.get(f"/v1/otp/{otp_id}")).status_code == 404
    assert refusal(await verify(otp_id=otp_id, code=ann.code)) == (404, "not_found")
    feed = (await client.get("/v1/events?event=otp.sent")).json()["data"]
    assert [(event["data"]["otp_id"], event["data"]["first_name"]) for event in feed] == [
        (otp_id, "")
    ]


async def test_message_that_is_told_of_twice_is_one_event(
    service: Service, tenant: Tenant, send: Any, seen: Any
) -> None:
    told = {
        "project_id": tenant.project.project_id,
        "otp_id": await send(),
        "channel": "messenger_a",
        "outcome": "sent",
    }

    async with service.db.transaction() as tx:
        await service.jobs.enqueue(tx, NewJob("otp.told", told))
    await settled(service)

    assert await seen() == [("otp.sent", 3)]


async def test_message_that_came_too_late_is_told_by_its_reason(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    idle = await make_service(extra_plugins=[("otp", plugin)], jobs={"runner": "none"})
    client = (await make_tenant(idle)).client
    helper = await make_service(
        extra_plugins=[("otp", plugin)], database_url=idle.settings.database_url
    )
    person = ann_of(helper)
    body = {"subscriber_id": await person.subscribe(client)}
    await helper.stop()
    otp_id = (await client.post("/v1/otp/send", json=body)).json()["otp_id"]
    clock.advance(301)

    late = await make_service(
        extra_plugins=[("otp", plugin)], database_url=idle.settings.database_url
    )
    await settled(late)

    code = (await client.get(f"/v1/otp/{otp_id}")).json()
    assert (code["status"], code["reason"]) == ("expired", "expired")
    assert ann_of(late).messages == []


async def test_needs_the_scope_otp(service: Service, make_tenant: Any) -> None:
    other = await make_tenant(service, scopes=("messages",))

    for path in ("send", "request", "verify"):
        body = {"code": "1"} if path == "verify" else {}
        answer = await other.client.post(f"/v1/otp/{path}", json=body)

        assert refusal(answer) == (403, "forbidden")
