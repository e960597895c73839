"""On a platform that drops repeats, what is in doubt is sent again with its key, and shown once."""

from dataclasses import replace

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.models import Message
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.subscribing import Subscribe


def lost() -> DeliveryError:
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the connection broke", in_doubt=True)


@pytest.fixture
async def ann(subscribe: Subscribe, service: Service, channel: RecordingChannel) -> str:
    channel.capabilities = replace(channel.capabilities, repeatable=True)
    found = await subscribe("Ann")
    await settled(service)
    channel.sent.clear()
    channel.keys.clear()
    return found


async def send(service: Service, tenant: Tenant, subscriber_id: str, text: str = "Hi") -> str:
    async with service.db.transaction() as tx:
        body = SendBody(subscriber_id=subscriber_id, text=text)
        message = await service.messages.queue(tx, tenant.project.project_id, body)
    return message.message_id


async def found(service: Service, tenant: Tenant, message_id: str) -> Message:
    async with service.db.read() as tx:
        return await service.messages.find(tx, tenant.project.project_id, message_id)


async def test_a_message_whose_answer_was_lost_is_sent_again_with_its_key(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel, clock: FakeClock
) -> None:
    channel.failures = [lost()]
    message_id = await send(service, tenant, ann)
    await settled(service)
    waiting = await found(service, tenant, message_id)
    clock.advance(5)
    await settled(service)
    message = await found(service, tenant, message_id)

    assert (waiting.status, waiting.reason) == ("queued", "unknown")
    assert (message.status, message.reason, message.attempts) == ("sent", None, 2)
    assert channel.keys == [message_id, message_id]
    assert channel.texts == ["Hi"]


@pytest.mark.both_databases
async def test_a_message_whose_runner_died_is_sent_again_with_its_key(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    async with service.db.transaction() as tx:
        body = SendBody(subscriber_id=ann, text="Hi")
        message = await service.messages.queue(tx, tenant.project.project_id, body)
        # As a runner leaves it that died between the mark and the outcome.
        await tx.execute("UPDATE core_messages SET status = 'sending', attempts = 1", {})
    await settled(service)
    after = await found(service, tenant, message.message_id)

    assert (after.status, after.reason) == ("sent", None)
    assert channel.keys == [message.message_id]


async def test_what_stays_in_doubt_to_the_end_is_unknown_and_not_failed(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel, clock: FakeClock
) -> None:
    refused = DeliveryError(Reason.INVALID_MESSAGE, "no such sticker")
    channel.failures = [lost(), refused]
    message_id = await send(service, tenant, ann)
    await settled(service)
    clock.advance(5)
    await settled(service)
    message = await found(service, tenant, message_id)
    (event,) = [
        each["data"]
        for each in (await tenant.client.get("/v1/events")).json()["data"]
        if each["event"] == "delivery.failed"
    ]

    assert (message.status, message.reason) == ("unknown", "unknown")
    assert (event["status"], event["reason"]) == ("unknown", "unknown")


async def test_one_that_may_not_be_sent_any_more_is_unknown_and_not_skipped(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel, clock: FakeClock
) -> None:
    channel.failures = [lost()]
    message_id = await send(service, tenant, ann)
    await settled(service)
    await tenant.client.delete(f"/v1/subscribers/{ann}")
    clock.advance(5)
    await settled(service)

    assert (await found(service, tenant, message_id)).status == "unknown"
    assert len(channel.keys) == 1


async def test_what_the_bot_says_has_one_key_over_its_tries(
    service: Service, ann: str, channel: RecordingChannel, clock: FakeClock
) -> None:
    channel.failures = [lost()]
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, "messenger_a", "chat-Ann", OutgoingMessage("Sign in?"))
    await settled(service)
    clock.advance(5)
    await settled(service)

    assert len(channel.keys) == 2
    assert len(set(channel.keys)) == 1
    assert channel.texts == ["Sign in?"]


async def test_two_messages_never_share_a_key(
    service: Service, tenant: Tenant, ann: str, channel: RecordingChannel
) -> None:
    for _ in range(3):
        await send(service, tenant, ann, "the same")
    await settled(service)

    assert len(set(channel.keys)) == 3
    assert channel.texts == ["the same"] * 3
