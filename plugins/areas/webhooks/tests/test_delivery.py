"""From an event to the receivers, on a running service: to whom it goes, how signed, and how soon."""

import asyncio
import json
from typing import Any

import pytest
import structlog

from msgsvc_core.security.signing import verify
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from plugins.areas.webhooks.tests.conftest import PATIENT


async def test_event_reaches_the_receiver_signed(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    webhook = await add_webhook()
    event = await emit()
    await settled(service)
    (request,) = receiver.received

    data = {"event_id": event.event_id, **event.data}
    assert request.event == {"event": "subscription.created", "data": data}
    assert verify(request.body, request.headers["X-Service-Signature"], [webhook["secret"]])


async def test_a_request_has_the_headers_that_are_described(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook()
    await emit()
    await settled(service)
    (request,) = receiver.received
    described = service.openapi(service.endpoints)["webhooks"]["subscription.created"]["post"]

    assert {parameter["name"].lower() for parameter in described["parameters"]} <= {
        name.lower() for name in request.headers
    }
    assert {name.lower() for name in request.headers if name.startswith("X-")} <= {
        parameter["name"].lower() for parameter in described["parameters"]
    }


async def test_an_event_has_the_id_of_the_feed_at_every_webhook(
    service: Service, client: Any, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook()
    await add_webhook(receiver.url + "/other")
    await emit()
    await settled(service)
    [shown] = (await client.get("/v1/events")).json()["data"]

    assert len(receiver.received) == 2
    for request in receiver.received:
        assert request.event["data"]["event_id"] == shown["event_id"]
        assert request.headers["X-Service-Event-Id"] == shown["event_id"]


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


@pytest.mark.parametrize("service", [PATIENT], indirect=True)
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
        return len(healthy.received) == 20 and len(slow.received) >= 8

    await until(all_arrived)

    assert len(slow.received) == 8


async def test_events_of_a_burst_all_arrive_once(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
):
    await add_webhook()
    await asyncio.gather(*(emit() for _ in range(50)))
    await settled(service)
    ids = {request.headers["X-Service-Delivery-Id"] for request in receiver.received}

    assert len(receiver.received) == len(ids) == 50


async def test_a_header_that_is_not_utf8_makes_no_call_come_again(
    service: Service, client: Any, add_webhook: Any, emit: Any, clock: Any
):
    calls = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        await reader.readexactly(length)
        calls += 1
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n"
            b"X-Served-By: caf\xe9\r\n\r\nok"
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        webhook = await add_webhook(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        for _ in range(10):
            await emit()
        await settled(service)
        clock.advance(3600)
        await settled(service)
    found = await client.get(f"/v1/webhooks/{webhook['webhook_id']}/deliveries")
    deliveries = found.json()["data"]

    assert calls == 10
    assert [(one["status"], len(one["attempts"])) for one in deliveries] == [("delivered", 1)] * 10


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
