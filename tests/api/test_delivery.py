"""Delivery, where several messages of a chat, or two runners, could step on each other."""

import json

import pytest

from msgsvc_core.channels import ChannelUser, DeliveryError, Reason
from msgsvc_core.channels.calls import BATCH
from msgsvc_core.db import Unit
from msgsvc_core.errors import ValidationFailed
from msgsvc_core.messages import store
from msgsvc_core.messages.models import SendBody
from msgsvc_core.service import Service
from msgsvc_core.testing import RecordingChannel, settled
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from tests.api.conftest import Subscribe

ANN = ChannelUser("user-ann", "Ann", "ann", "en")


async def test_who_blocked_the_bot_is_not_called_again_for_what_waits_behind(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann")
    channel.sent.clear()
    channel.failures = [DeliveryError(Reason.USER_BLOCKED_BOT, "blocked")]
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        messages = [
            await service.messages.queue(tx, project_id, SendBody(subscriber_id=ann, text=text))
            for text in ("one", "two")
        ]
    await settled(service)

    async with service.db.read() as tx:
        found = [await service.messages.find(tx, project_id, m.message_id) for m in messages]

    assert [message.status for message in found] == ["failed", "skipped"]
    assert channel.texts == []


async def test_a_chat_gets_its_messages_in_order_over_several_batches(
    service: Service, tenant: Tenant, channel: RecordingChannel, subscribe: Subscribe
) -> None:
    people = {name: await subscribe(name) for name in ("Ann", "Ben")}
    channel.sent.clear()
    wanted = [f"{name} {number}" for number in range(BATCH + 20) for name in people]
    unit = Unit()
    for text in wanted:
        body = SendBody(subscriber_id=people[text.partition(" ")[0]], text=text)
        await service.messages.add(unit, tenant.project.project_id, body)
    await service.db.write(unit)
    await settled(service)

    for name in people:
        mine = [text for text in wanted if text.startswith(name)]
        assert [text for text in channel.texts if text.startswith(name)] == mine


async def test_only_one_of_two_runners_may_send_a_message(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(jobs={"runner": "none"})
    project = await service.projects.create("Shop")
    async with service.db.transaction() as tx:
        ann = await service.subscribers.ensure(
            tx, project.project_id, "messenger_a", ANN, "chat-ann", source="api"
        )
    message = await service.messages.send(
        project.project_id, subscriber_id=ann.subscriber_id, text="Hi"
    )
    async with service.db.transaction() as tx:
        first = await store.mark_sending(tx, [message])
    async with service.db.transaction() as tx:
        second = await store.mark_sending(tx, [message])

    assert first == {message.message_id}
    assert second == set()


async def test_a_send_in_process_is_refused_as_the_api_refuses_it(
    service: Service, tenant: Tenant
) -> None:
    with pytest.raises(ValidationFailed, match="txt: there is no such field"):
        await service.messages.send(tenant.project.project_id, subscriber_id="sub_1", txt="Hi")


@pytest.mark.parametrize(("status", "ended"), [("queued", "failed"), ("sending", "unknown")])
async def test_a_message_whose_job_is_dead_has_failed(
    make_service: ServiceFactory, status: str, ended: str
) -> None:
    quiet = await make_service(jobs={"runner": "none"})
    project = await quiet.projects.create("Shop")
    async with quiet.db.transaction() as tx:
        ann = await quiet.subscribers.ensure(
            tx, project.project_id, "messenger_a", ANN, "chat-ann", source="api"
        )
    message = await quiet.messages.send(
        project.project_id, subscriber_id=ann.subscriber_id, text="Hi"
    )
    async with quiet.db.transaction() as tx:
        # As if each runner had died over it.
        await tx.execute("UPDATE core_jobs SET deliveries = 100")
        await tx.execute("UPDATE core_messages SET status = :status", {"status": status})

    service = await make_service(database_url=quiet.settings.database_url)
    await settled(service)

    async with service.db.read() as tx:
        found = await service.messages.find(tx, project.project_id, message.message_id)
        events = await tx.fetch_all("SELECT data FROM core_events WHERE name = 'delivery.failed'")
    assert (found.status, found.reason) == (ended, "unknown")
    assert [json.loads(event["data"])["reason"] for event in events] == ["unknown"]
