"""What ends a delivery that did not arrive at once: a later attempt, a refusal, or its webhook's end."""

from datetime import datetime
from typing import Any

import pytest

from msgsvc_core.security.signing import verify
from msgsvc_core.service import Service
from msgsvc_devkit import settled


async def test_failing_receiver_gets_every_attempt_of_the_plan(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, clock: Any
):
    receiver.always = receiver.answer(500, "no")
    webhook = await add_webhook()
    await emit()
    await settled(service)
    while (await journal(webhook))[0]["status"] == "queued":
        (delivery,) = await journal(webhook)
        due = datetime.fromisoformat(delivery["next_attempt_at"])
        clock.advance(due.timestamp() - clock.time())
        await settled(service)
    (delivery,) = await journal(webhook)
    headers = [request.headers for request in receiver.received]

    assert delivery["status"] == "failed"
    assert len(delivery["attempts"]) == len(headers) == 10
    assert len({h["X-Service-Delivery-Id"] for h in headers}) == 1
    assert len({h["X-Service-Timestamp"] for h in headers}) == 10
    assert len({h["X-Service-Signature"] for h in headers}) == 10
    assert len({request.body for request in receiver.received}) == 1
    for request in receiver.received:
        assert verify(request.body, request.headers["X-Service-Signature"], [webhook["secret"]])


async def test_retry_that_succeeds_ends_the_delivery(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, clock: Any
):
    receiver.then(receiver.hang_up, receiver.answer(302, Location="/elsewhere"))
    webhook = await add_webhook()
    await emit()
    await settled(service)
    for delay_s in (1, 2, 4):
        clock.advance(delay_s)
        await settled(service)
    (delivery,) = await journal(webhook)

    assert delivery["status"] == "delivered"
    assert [attempt["status_code"] for attempt in delivery["attempts"]] == [None, 302, 200]
    assert [attempt["attempted_at"][17:19] for attempt in delivery["attempts"]] == [
        "00",
        "01",
        "03",
    ]


async def test_retry_is_not_made_before_its_time(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any
):
    receiver.always = receiver.answer(500)
    await add_webhook()
    await emit()
    await settled(service)
    clock.advance(0.9)
    await settled(service)

    assert len(receiver.received) == 1


@pytest.mark.both_databases
@pytest.mark.shared_service
@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_4xx_ends_a_delivery_at_once(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, status: int
):
    receiver.always = receiver.answer(status, "never")
    webhook = await add_webhook()
    await emit()
    await settled(service)
    (delivery,) = await journal(webhook)

    assert delivery["status"] == "failed"
    assert delivery["next_attempt_at"] is None
    assert len(receiver.received) == 1


async def test_throttled_delivery_waits_for_retry_after(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, clock: Any
):
    receiver.then(receiver.answer(429, Retry_After="90"))
    webhook = await add_webhook()
    await emit()
    await settled(service)
    clock.advance(89)
    await settled(service)
    before = len(receiver.received)
    clock.advance(1)
    await settled(service)
    (delivery,) = await journal(webhook)

    assert (before, len(receiver.received)) == (1, 2)
    assert delivery["status"] == "delivered"


@pytest.mark.both_databases
async def test_throttled_delivery_ends_at_once_when_the_setting_is_off(
    make_webhook_service: Any, make_tenant: Any, receiver: Any
):
    service = await make_webhook_service(retry_timeouts_and_throttling=False)
    tenant = await make_tenant(service)
    receiver.always = receiver.answer(429)
    await tenant.client.post("/v1/webhooks", json={"url": receiver.url})
    async with service.db.transaction() as tx:
        await service.events.emit(
            tx, tenant.project.project_id, "subscription.created", {"source": "api"}
        )
    await settled(service)
    async with service.db.read() as tx:
        status = await tx.fetch_val("SELECT status FROM webhooks_deliveries")

    assert status == "failed"


@pytest.mark.both_databases
async def test_410_disables_the_webhook(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    receiver.always = receiver.answer(410)
    webhook = await add_webhook()
    await emit()
    await settled(service)
    await emit()
    await settled(service)
    shown = (await client.get(f"/v1/webhooks/{webhook['webhook_id']}")).json()

    assert shown["status"] == "disabled"
    assert [delivery["status"] for delivery in await journal(webhook)] == ["failed"]
    assert len(receiver.received) == 1


async def test_target_that_the_guard_refuses_ends_the_delivery(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    webhook = await add_webhook()
    # As if the operator had closed the range, or the name had moved, since the webhook was made.
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE webhooks_endpoints SET url = 'http://10.0.0.1/'")
    await emit()
    await settled(service)
    (delivery,) = await journal(webhook)

    assert delivery["status"] == "failed"
    assert [attempt["error"] for attempt in delivery["attempts"]] == [
        "the address 10.0.0.1 is not public"
    ]


@pytest.mark.both_databases
async def test_disabled_webhook_gets_nothing_and_its_deliveries_are_cancelled(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    journal: Any,
    clock: Any,
):
    receiver.always = receiver.answer(500)
    webhook = await add_webhook()
    await emit()
    await settled(service)
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"status": "disabled"})
    await emit()
    clock.advance(1)
    await settled(service)
    (delivery,) = await journal(webhook)

    assert delivery["status"] == "cancelled"
    assert delivery["next_attempt_at"] is None
    assert len(receiver.received) == 1


async def test_deleted_webhook_gets_nothing_and_its_deliveries_are_cancelled(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, clock: Any
):
    receiver.always = receiver.answer(500)
    webhook = await add_webhook()
    await emit()
    await settled(service)
    await client.delete(f"/v1/webhooks/{webhook['webhook_id']}")
    clock.advance(1)
    await settled(service)
    async with service.db.read() as tx:
        statuses = [
            row["status"] for row in await tx.fetch_all("SELECT status FROM webhooks_deliveries")
        ]

    assert statuses == ["cancelled"]
    assert len(receiver.received) == 1


async def test_a_delivery_whose_job_is_dead_has_failed(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    receiver.then(receiver.answer(500))
    webhook = await add_webhook()
    await emit()
    await settled(service)
    async with service.db.transaction() as tx:
        # As if the next attempts had killed their runner.
        await tx.execute(
            "UPDATE core_jobs SET deliveries = 100, run_at_ms = 0 WHERE name = 'webhooks.deliver'"
        )
    await settled(service)
    (delivery,) = await journal(webhook)

    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert len(receiver.received) == 1
