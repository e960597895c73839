"""Delivery, where several messages of a chat, or two runners, could step on each other."""

import pytest

from msgsvc_core.channels import ChannelUser, DeliveryError, Reason
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
