"""What a project does about its deliveries by hand: a test, one delivery again, all since a time."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.security.signing import verify
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_webhooks import replays


def path(webhook: dict[str, Any], action: str) -> str:
    return f"/v1/webhooks/{webhook['webhook_id']}/{action}"


async def delivery_of(client: Any, delivery_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/webhooks/deliveries/{delivery_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def disable(client: Any, webhook: dict[str, Any]) -> None:
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"status": "disabled"})


# ---- a test --------------------------------------------------------------------------------------


async def test_a_test_reaches_the_webhook_signed_whatever_events_it_names(
    service: Service, client: Any, add_webhook: Any, receiver: Any
):
    webhook = await add_webhook(events=["subscription.deleted"])
    await add_webhook(receiver.url + "/other")
    answer = await client.post(path(webhook, "test"))
    await settled(service)
    delivery = await delivery_of(client, answer.json()["delivery_id"])

    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    [request] = receiver.received
    assert request.event == {
        "event": "webhook.test",
        "data": {
            "event_id": request.headers["X-Service-Event-Id"],
            "occurred_at": "2026-01-15T12:00:00.000Z",
            "webhook_id": webhook["webhook_id"],
        },
    }
    assert verify(request.body, request.headers["X-Service-Signature"], [webhook["secret"]])
    assert (delivery["event"], delivery["status"]) == ("webhook.test", "delivered")
    assert [attempt["status_code"] for attempt in delivery["attempts"]] == [200]


async def test_a_test_is_tried_once(service: Service, client: Any, add_webhook: Any, receiver: Any):
    receiver.always = receiver.answer(500, "broken")
    webhook = await add_webhook()
    answer = await client.post(path(webhook, "test"))
    await settled(service)
    delivery = await delivery_of(client, answer.json()["delivery_id"])

    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert [attempt["answer"] for attempt in delivery["attempts"]] == ["broken"]
    assert [attempt["code"] for attempt in delivery["attempts"]] == ["bad_status"]


async def test_a_test_is_not_in_the_feed(service: Service, client: Any, add_webhook: Any):
    webhook = await add_webhook()
    await client.post(path(webhook, "test"))
    await settled(service)

    assert (await client.get("/v1/events")).json()["data"] == []


@pytest.mark.parametrize(
    ("action", "body"), [("test", None), ("replay", {"since": "2026-01-15T00:00:00Z"})]
)
async def test_a_disabled_webhook_is_not_tested_and_gets_no_replay(
    client: Any, add_webhook: Any, action: str, body: Any
):
    webhook = await add_webhook()
    await disable(client, webhook)

    answer = await client.post(path(webhook, action), json=body)

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


# ---- one delivery again --------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 404])
async def test_a_redelivery_has_the_same_id_and_body_and_a_fresh_signature(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    journal: Any,
    clock: Any,
    status: int,
):
    receiver.then(receiver.answer(status))
    webhook = await add_webhook()
    await emit()
    await settled(service)
    [delivery] = await journal(webhook)
    clock.advance(60)
    answer = await client.post(f"/v1/webhooks/deliveries/{delivery['delivery_id']}/redeliver")
    await settled(service)
    first, second = receiver.received
    [after] = await journal(webhook)

    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    name = "X-Service-Delivery-Id"
    assert first.headers[name] == second.headers[name] == delivery["delivery_id"]
    assert first.body == second.body
    assert first.headers["X-Service-Signature"] != second.headers["X-Service-Signature"]
    assert verify(second.body, second.headers["X-Service-Signature"], [webhook["secret"]])
    assert after["status"] == "delivered"
    assert [attempt["status_code"] for attempt in after["attempts"]] == [status, 200]


async def test_a_redelivery_has_the_whole_retry_plan_before_it(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    journal: Any,
    clock: Any,
):
    webhook = await add_webhook()
    await emit()
    await settled(service)
    [delivery] = await journal(webhook)
    receiver.always = receiver.answer(500)
    clock.advance(2 * 86400)
    await client.post(f"/v1/webhooks/deliveries/{delivery['delivery_id']}/redeliver")
    await settled(service)
    [after] = await journal(webhook)

    assert after["status"] == "queued"
    assert after["next_attempt_at"] == "2026-01-17T12:00:01.000Z"


@pytest.mark.both_databases
async def test_what_waits_to_be_retried_is_tried_at_once_with_the_whole_plan_before_it(
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
    for seconds in (1, 2, 4, 2 * 3600, 4):
        clock.advance(seconds)
        await settled(service)
    [waiting] = await journal(webhook)
    answer = await client.post(f"/v1/webhooks/deliveries/{waiting['delivery_id']}/redeliver")
    await settled(service)
    [after] = await journal(webhook)
    receiver.always = None
    for seconds in (1, 2 * 86400):
        clock.advance(seconds)
        await settled(service)
    [delivered] = await journal(webhook)

    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    assert after["status"] == "queued"
    assert waiting["next_attempt_at"] > "2026-01-15T17"
    assert after["next_attempt_at"] == "2026-01-15T14:00:12.000Z"
    assert [each["status_code"] for each in delivered["attempts"]] == [500] * 7 + [200]
    # The time that it waited for before has no attempt of its own any more.
    assert len(receiver.received) == 8


async def test_what_is_being_tried_is_not_tried_once_more(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    webhook = await add_webhook()
    receiver.then(receiver.trickle)
    await emit()
    async with asyncio.timeout(60):
        while not receiver.received:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)
    [delivery] = await journal(webhook)

    answer = await client.post(f"/v1/webhooks/deliveries/{delivery['delivery_id']}/redeliver")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "being tried" in answer.json()["error"]


@pytest.mark.parametrize("gone", ["disabled", "deleted"])
async def test_nothing_is_redelivered_to_a_webhook_that_is_disabled_or_deleted(
    service: Service, client: Any, add_webhook: Any, emit: Any, journal: Any, gone: str
):
    webhook = await add_webhook()
    await emit()
    await settled(service)
    [delivery] = await journal(webhook)
    if gone == "disabled":
        await disable(client, webhook)
    else:
        await client.delete(f"/v1/webhooks/{webhook['webhook_id']}")

    answer = await client.post(f"/v1/webhooks/deliveries/{delivery['delivery_id']}/redeliver")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert gone in answer.json()["error"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_unknown_delivery_is_not_found(client: Any, method: str):
    tail = "/redeliver" if method == "POST" else ""

    answer = await client.request(method, f"/v1/webhooks/deliveries/whd_nothing{tail}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


# ---- all since a time ----------------------------------------------------------------------------


@pytest.mark.both_databases
async def test_a_replay_delivers_what_happened_before_the_webhook_was_there(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, clock: Any
):
    await emit("subscription.created", source="deep_link")
    clock.advance(3600)
    events = [await emit() for _ in range(3)]
    await emit("subscription.deleted", source="api", reason="left")
    clock.advance(1)
    webhook = await add_webhook(events=["subscription.created"])
    since = "2026-01-15T13:00:00Z"
    answer = await client.post(path(webhook, "replay"), json={"since": since})
    await settled(service)

    assert answer.status_code == 202
    assert answer.json() == {
        "webhook_id": webhook["webhook_id"],
        "since": "2026-01-15T13:00:00.000Z",
        "until": "2026-01-15T13:00:01.000Z",
        "include_delivered": False,
        "events": 3,
    }
    assert [request.event["data"] for request in receiver.received] == [
        {"event_id": e.event_id, **e.data} for e in events
    ]


async def test_a_replay_repeats_under_their_ids_those_that_failed_and_none_that_arrived(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    receiver.then(receiver.answer(404))
    webhook = await add_webhook()
    for _ in range(3):
        await emit()
        await settled(service)
    failed = receiver.received[0].headers["X-Service-Delivery-Id"]
    await client.post(path(webhook, "replay"), json={"since": "2026-01-15T12:00:00Z"})
    await settled(service)
    deliveries = await journal(webhook)

    assert len(receiver.received) == 4
    assert receiver.received[3].headers["X-Service-Delivery-Id"] == failed
    assert [delivery["status"] for delivery in deliveries] == ["delivered"] * 3


async def test_a_replay_repeats_what_arrived_if_it_is_asked_to(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, journal: Any
):
    webhook = await add_webhook()
    for _ in range(2):
        await emit()
    await settled(service)
    body = {"since": "2026-01-15T12:00:00Z", "include_delivered": True}
    await client.post(path(webhook, "replay"), json=body)
    await settled(service)
    ids = [request.headers["X-Service-Delivery-Id"] for request in receiver.received]

    assert len(ids) == 4
    assert len(set(ids)) == len(await journal(webhook)) == 2


async def test_a_replay_delivers_what_was_missed_while_the_webhook_was_disabled(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any
):
    webhook = await add_webhook()
    await disable(client, webhook)
    event = await emit()
    await client.put(f"/v1/webhooks/{webhook['webhook_id']}", json={"status": "active"})
    await client.post(path(webhook, "replay"), json={"since": "2026-01-15T12:00:00Z"})
    await settled(service)

    data = {"event_id": event.event_id, **event.data}
    assert [request.event["data"] for request in receiver.received] == [data]


@pytest.mark.both_databases
async def test_a_replay_goes_through_many_events_in_chunks_each_of_them_once(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    tenant: Any,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(replays, "CHUNK", 7)
    async with service.db.transaction() as tx:
        for number in range(28):
            fields = {"name": "n", "properties": {"number": number}}
            await service.events.emit(tx, tenant.project.project_id, "event.tracked", fields)
    webhook = await add_webhook()
    await client.post(path(webhook, "replay"), json={"since": "2026-01-15T12:00:00Z"})
    await settled(service)
    numbers = [request.event["data"]["properties"]["number"] for request in receiver.received]

    assert sorted(numbers) == list(range(28))


async def test_a_replay_leaves_alone_what_is_on_its_way(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any, clock: Any
):
    receiver.then(receiver.answer(500))
    webhook = await add_webhook()
    await emit()
    await settled(service)
    await client.post(path(webhook, "replay"), json={"since": "2026-01-15T12:00:00Z"})
    await settled(service)
    before = len(receiver.received)
    clock.advance(1)
    await settled(service)

    assert (before, len(receiver.received)) == (1, 2)


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ("2026-01-15T12:00:01Z", "since: must not be in the future"),
        ("2025-12-16T11:59:59Z", "since: must be within the last 30 days"),
        ("yesterday", "since: must be a time of RFC 3339"),
    ],
)
async def test_a_replay_since_a_time_that_makes_no_sense_is_refused(
    client: Any, add_webhook: Any, since: str, why: str
):
    webhook = await add_webhook()

    answer = await client.post(path(webhook, "replay"), json={"since": since})

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert answer.json()["error"].startswith(why)


async def test_a_replay_of_more_events_than_the_limit_is_refused(
    make_webhook_service: Any, make_tenant: Any, receiver: Any
):
    service = await make_webhook_service(replay_events=2)
    tenant = await make_tenant(service)
    async with service.db.transaction() as tx:
        for _ in range(3):
            await service.events.emit(
                tx, tenant.project.project_id, "subscription.created", {"source": "api"}
            )
    webhook = (await tenant.client.post("/v1/webhooks", json={"url": receiver.url})).json()

    answer = await tenant.client.post(
        path(webhook, "replay"), json={"since": "2026-01-15T12:00:00Z"}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert "more than 2 events" in answer.json()["error"]


async def test_a_second_replay_of_a_webhook_has_to_wait_for_the_first(
    make_webhook_service: Any, make_tenant: Any, receiver: Any
):
    service = await make_webhook_service(core={"jobs": {"runner": "none"}})
    tenant = await make_tenant(service)
    webhook = (await tenant.client.post("/v1/webhooks", json={"url": receiver.url})).json()
    body = {"since": "2026-01-15T12:00:00Z"}

    first = await tenant.client.post(path(webhook, "replay"), json=body)
    second = await tenant.client.post(path(webhook, "replay"), json=body)

    assert (first.status_code, second.status_code) == (202, 409)
