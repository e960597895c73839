"""POST /v1/send, from the call to the outcome."""

from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, DeliveryError, Reason, Started
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant


async def subscribe(service: Service, tenant: Tenant, name: str = "Ann") -> str:
    """Has a person subscribe by link; returns their subscriber_id."""
    answer = await tenant.client.post("/v1/subscribers/links", json={})
    payload = answer.json()["links"]["messenger_a"].partition("start=")[2]
    user = ChannelUser(f"user-{name}", name, name.lower(), "en")
    await service.inbound.receive(
        "messenger_a",
        Started(update_id=f"start-{name}", chat_id=f"chat-{name}", user=user, payload=payload),
    )
    await settled(service)
    listed = await tenant.client.get("/v1/subscribers")
    return str(listed.json()["data"][0]["subscriber_id"])


async def send(tenant: Tenant, **body: Any) -> Any:
    answer = await tenant.client.post("/v1/send", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["message_id"]


async def test_a_message_reaches_the_chat_and_is_reported(
    service: Service, tenant: Tenant, channel: RecordingChannel
) -> None:
    subscriber_id = await subscribe(service, tenant)

    message_id = await send(tenant, subscriber_id=subscriber_id, text="Your order is on its way")
    await settled(service)

    assert channel.texts[-1] == "Your order is on its way"
    message = (await tenant.client.get(f"/v1/messages/{message_id}")).json()
    assert (message["status"], message["attempts"]) == ("sent", 1)
    events = (await tenant.client.get("/v1/events?event=delivery.success")).json()["data"]
    assert [event["data"]["message_id"] for event in events] == [message_id]


@pytest.mark.both_databases
async def test_a_blocked_bot_fails_the_message_and_ends_the_subscription(
    service: Service, tenant: Tenant, channel: RecordingChannel
) -> None:
    subscriber_id = await subscribe(service, tenant)
    channel.failures = [DeliveryError(Reason.USER_BLOCKED_BOT, "bot was blocked by the user")]

    message_id = await send(tenant, subscriber_id=subscriber_id, text="Hello")
    await settled(service)

    message = (await tenant.client.get(f"/v1/messages/{message_id}")).json()
    assert (message["status"], message["reason"]) == ("failed", "user_blocked_bot")
    events = (await tenant.client.get("/v1/events?limit=2")).json()["data"]
    assert [event["event"] for event in events] == ["subscription.deleted", "delivery.failed"]
    assert events[1]["data"]["should_unsubscribe"] is True
    assert events[1]["data"]["retryable"] is False


async def test_a_rate_limited_message_waits_for_as_long_as_the_platform_says(
    service: Service, tenant: Tenant, channel: RecordingChannel, clock: FakeClock
) -> None:
    subscriber_id = await subscribe(service, tenant)
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=7)]
    message_id = await send(tenant, subscriber_id=subscriber_id, text="Hello")
    await settled(service)
    clock.advance(6.9)
    await settled(service)
    before = (await tenant.client.get(f"/v1/messages/{message_id}")).json()

    clock.advance(0.2)
    await settled(service)

    after = (await tenant.client.get(f"/v1/messages/{message_id}")).json()
    assert (before["status"], after["status"]) == ("queued", "sent")
