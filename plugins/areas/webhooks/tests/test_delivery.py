"""From an event to the receiver, with retries, on a running service."""

import asyncio
import json
from datetime import datetime
from typing import Any

import pytest
import structlog

from msgsvc_core.security.signing import verify
from msgsvc_core.service import Service
from msgsvc_core.testing import settled, until


async def test_event_reaches_the_receiver_signed(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    webhook = await add_webhook()
    event = await emit()
    await settled(service)
    (request,) = receiver.received

    assert request.event == {"event": "subscription.created", "data": event.data}
    assert verify(request.body, request.headers["X-Service-Signature"], [webhook["secret"]])


async def test_journal_shows_a_delivery_and_its_attempt(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    receiver.then(receiver.answer(201, "thanks"))
    webhook = await add_webhook()
    event = await emit()
    await settled(service)
    (delivery,) = await journal(webhook)
    (attempt,) = delivery.pop("attempts")

    assert delivery == {
        "delivery_id": receiver.received[0].headers["X-Service-Delivery-Id"],
        "event_id": event.event_id,
        "event": "subscription.created",
        "status": "delivered",
        "created_at": "2026-01-15T12:00:00.000Z",
        "next_attempt_at": None,
        "finished_at": "2026-01-15T12:00:00.000Z",
    }
    assert attempt.pop("duration_ms") >= 0
    assert attempt == {
        "attempted_at": "2026-01-15T12:00:00.000Z",
        "status_code": 201,
        "error": None,
        "answer": "thanks",
    }


async def test_only_events_that_a_webhook_names_are_sent_to_it(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook(receiver.url + "/left", events=["subscription.deleted"])
    await add_webhook(receiver.url + "/all")
    await emit("subscription.created", source="api")
    await emit("subscription.deleted", source="api", reason="left")
    await settled(service)
    got = sorted((request.path, request.event["event"]) for request in receiver.received)

    assert got == [
        ("/hook/all", "subscription.created"),
        ("/hook/all", "subscription.deleted"),
        ("/hook/left", "subscription.deleted"),
    ]


async def test_every_webhook_has_its_own_delivery_id(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook()
    await add_webhook()
    await emit()
    await settled(service)
    ids = {request.headers["X-Service-Delivery-Id"] for request in receiver.received}

    assert len(receiver.received) == len(ids) == 2
    assert all(delivery_id.startswith("whd_") for delivery_id in ids)


async def test_event_of_another_project_is_not_sent(
    service: Service, add_webhook: Any, receiver: Any, make_tenant: Any
):
    await add_webhook()
    other = await make_tenant(service, "Other")
    async with service.db.transaction() as tx:
        await service.events.emit(
            tx, other.project.project_id, "subscription.created", {"source": "api"}
        )
    await settled(service)

    assert receiver.received == []


async def test_event_that_was_rolled_back_is_not_sent(
    service: Service, tenant: Any, add_webhook: Any, receiver: Any, journal: Any
):
    async def fail_after_the_event() -> None:
        async with service.db.transaction() as tx:
            await service.events.emit(
                tx, tenant.project.project_id, "subscription.created", {"source": "api"}
            )
            raise RuntimeError("undone")

    webhook = await add_webhook()
    with pytest.raises(RuntimeError, match="undone"):
        await fail_after_the_event()
    await settled(service)

    assert receiver.received == []
    assert await journal(webhook) == []


async def test_failing_receiver_gets_every_attempt_of_the_plan(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any, clock: Any
):
    receiver.always = receiver.answer(500, "no")
    webhook = await add_webhook()
    await emit()
    await settled(service)
    while (await journal(webhook))[0]["status"] == "pending":
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


async def test_both_secrets_sign_for_24_hours_after_a_rotation(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, clock: Any
):
    webhook = await add_webhook()
    rotated = await client.post(f"/v1/webhooks/{webhook['webhook_id']}/rotate-secret")
    old, new = webhook["secret"], rotated.json()["secret"]
    clock.advance(24 * 3600 - 1)
    await emit()
    await settled(service)
    clock.advance(1)
    await emit()
    await settled(service)
    during, after = receiver.received

    for secret in (old, new):
        assert verify(during.body, during.headers["X-Service-Signature"], [secret])
    assert verify(after.body, after.headers["X-Service-Signature"], [new])
    assert not verify(after.body, after.headers["X-Service-Signature"], [old])


async def test_slow_receiver_does_not_delay_another(
    service: Service, add_webhook: Any, make_receiver: Any, emit: Any
):
    slow, healthy = await make_receiver(), await make_receiver()
    slow.always = slow.trickle
    await add_webhook(slow.url)
    await add_webhook(healthy.url)
    for _ in range(20):
        await emit()

    async def all_arrived() -> bool:
        return len(healthy.received) == 20

    # Well below the 5 s after which the first of the slow attempts ends.
    await until(all_arrived, timeout_s=3)

    assert len(slow.received) == 8


async def test_events_of_a_burst_all_arrive_once(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook()
    await asyncio.gather(*(emit() for _ in range(50)))
    await settled(service)
    ids = {request.headers["X-Service-Delivery-Id"] for request in receiver.received}

    assert len(receiver.received) == len(ids) == 50


async def test_journal_is_paged_newest_first(
    service: Service, client: Any, add_webhook: Any, emit: Any
):
    webhook = await add_webhook()
    events = [(await emit()).event_id for _ in range(3)]
    await settled(service)
    path = f"/v1/webhooks/{webhook['webhook_id']}/deliveries?limit=2"

    first = (await client.get(path)).json()
    second = (await client.get(f"{path}&cursor={first['next_cursor']}")).json()

    listed = [delivery["event_id"] for delivery in first["data"] + second["data"]]
    assert listed == events[::-1]
    assert second["next_cursor"] is None


async def test_journal_is_forgotten_after_its_days(
    service: Service, add_webhook: Any, emit: Any, journal: Any, clock: Any
):
    webhook = await add_webhook()
    await emit()
    await settled(service)
    clock.advance(29 * 86400)
    await settled(service)
    kept = len(await journal(webhook))
    clock.advance(2 * 86400)
    await settled(service)
    async with service.db.read() as tx:
        attempts = await tx.fetch_val("SELECT COUNT(*) AS count FROM webhooks_attempts")

    assert (kept, len(await journal(webhook)), attempts) == (1, 0, 0)


async def test_secrets_and_urls_stay_out_of_the_logs(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any
):
    with structlog.testing.capture_logs() as logs:
        receiver.always = receiver.answer(404)
        webhook = await add_webhook(receiver.url + "?token=in-the-url")
        rotated = await client.post(f"/v1/webhooks/{webhook['webhook_id']}/rotate-secret")
        await emit()
        await settled(service)
    written = json.dumps(logs, default=str)

    assert "webhook_delivery_failed" in written
    for secret in (webhook["secret"], rotated.json()["secret"], "in-the-url"):
        assert secret not in written


async def test_a_secret_that_our_keys_do_not_open_is_a_failed_attempt_in_the_journal(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    webhook = await add_webhook()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE webhooks_secrets SET encrypted = 'sealed with a lost key'")
    await emit()
    await settled(service)
    (delivery,) = await journal(webhook)

    assert receiver.received == []
    assert delivery["status"] == "pending"
    assert "rotate it" in delivery["attempts"][0]["error"]


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
