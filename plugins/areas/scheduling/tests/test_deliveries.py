"""How far a message is that was sent to an audience at its time."""

from typing import Any

import httpx2

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel

from .conftest import AddPeople, get, pass_time, post

LATER = "2026-01-15T13:00:00Z"

DONE = {
    "status": "completed",
    "sent": 2,
    "failed": 1,
    "unknown": 0,
    "skipped": 0,
    "total": 3,
    "progress": 1.0,
    "eta_seconds": None,
    "code": None,
    "error": None,
}


async def test_scheduled_message_shows_how_far_its_delivery_is(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(3)
    channel.failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))
    made = await post(client, "/v1/scheduled", audience={"all": True}, send_at=LATER)
    await post(client, "/v1/scheduled", audience={"all": True}, send_at="2026-02-01T00:00:00Z")

    await pass_time(service, clock, 3601)

    after = await get(client, f"/v1/scheduled/{made['scheduled_id']}")
    listed: list[Any] = (await get(client, "/v1/scheduled"))["data"]
    assert made["delivery"] is None
    assert (after["status"], after["delivery"]) == ("sent", DONE)
    assert [each["delivery"] for each in listed] == [None, DONE]


async def test_recurring_message_shows_how_far_its_last_run_is(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(3)
    made = await post(client, "/v1/recurring", audience={"all": True}, every={"hours": 1})
    await pass_time(service, clock, 3601)
    channel.failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))
    await pass_time(service, clock, 3601)

    after = await get(client, f"/v1/recurring/{made['recurring_id']}")
    listed = (await get(client, "/v1/recurring"))["data"]

    assert after["delivery"] == DONE
    assert [each["delivery"] for each in listed] == [DONE]


async def test_message_to_one_subscriber_has_no_delivery(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, clock: FakeClock
) -> None:
    [ann] = await people(1)
    made = await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)

    await pass_time(service, clock, 3601)

    after = await get(client, f"/v1/scheduled/{made['scheduled_id']}")
    assert (after["status"], after["delivery"]) == ("sent", None)
    assert after["message_id"]
