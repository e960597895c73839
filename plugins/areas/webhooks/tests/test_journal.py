"""The journal of a webhook: what it shows of each delivery, in which order, and for how long."""

from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled


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
        "webhook_id": webhook["webhook_id"],
        "event_id": event.event_id,
        "event": "subscription.created",
        "status": "delivered",
        "created_at": "2026-01-15T12:00:00.000Z",
        "next_attempt_at": None,
        "finished_at": "2026-01-15T12:00:00.000Z",
    }
    assert attempt.pop("duration_seconds") >= 0
    assert attempt == {
        "attempted_at": "2026-01-15T12:00:00.000Z",
        "status_code": 201,
        "code": None,
        "error": None,
        "answer": "thanks",
    }


@pytest.mark.both_databases
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


@pytest.mark.both_databases
async def test_journal_is_filtered_by_status_and_event(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any
):
    receiver.then(receiver.answer(404))
    webhook = await add_webhook()
    failed = await emit()
    await settled(service)
    left = await emit("subscription.deleted", source="api", reason="left")
    created = await emit()
    await settled(service)
    path = f"/v1/webhooks/{webhook['webhook_id']}/deliveries"

    async def listed(**query: str) -> list[str]:
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return [delivery["event_id"] for delivery in answer.json()["data"]]

    assert await listed(status="failed") == [failed.event_id]
    assert await listed(status="queued") == []
    assert await listed(event="subscription.deleted") == [left.event_id]
    assert await listed(status="delivered", event="subscription.created") == [created.event_id]
    assert (await client.get(path, params={"status": "lost"})).status_code == 400


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
    assert delivery["status"] == "queued"
    assert "rotate it" in delivery["attempts"][0]["error"]
    assert delivery["attempts"][0]["answer"] is None
    assert delivery["attempts"][0]["code"] == "no_response"
