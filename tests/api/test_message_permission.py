"""A message that names a permission goes to those alone who have granted it."""

import asyncio
from collections.abc import Mapping, Sequence

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.db import Tx
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError, Send
from tests.api.reading import events_named, message_of


@pytest.fixture
async def news(client: httpx2.AsyncClient) -> str:
    """The key of a permission that nobody has granted yet."""
    answer = await client.post("/v1/permissions", json={"key": "news", "title": "News"})
    assert answer.status_code == 201, answer.text
    return "news"


async def grant(service: Service, tenant: Tenant, subscriber_id: str, *, granted: bool) -> None:
    async with service.db.transaction() as tx:
        await service.subscribers.set_permission(
            tx, tenant.project.project_id, subscriber_id, "news", granted
        )


async def test_an_unknown_permission_is_refused(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    body = {"subscriber_id": ann, "text": "Hi", "permission": "news"}
    fields = check_error(await client.post("/v1/send", json=body), 400, "validation_failed")

    assert fields["error"] == "permission: this project has no permission 'news'"


async def test_a_message_without_the_permission_is_skipped_with_the_reason(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    news: str,
    channel: RecordingChannel,
) -> None:
    before = len(channel.sent)
    message_id = await send(permission=news)
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["permission"]) == ("skipped", "news")
    why = "the permission 'news' is not granted"
    assert (message["reason"], message["error"]) == ("no_permission", why)
    assert len(channel.sent) == before
    [event] = await events_named(client, "delivery.failed")
    assert (event["message_id"], event["status"]) == (message_id, "skipped")
    assert (event["reason"], event["error"]) == ("no_permission", why)
    assert (event["retryable"], event["should_unsubscribe"]) == (False, False)


async def test_a_message_with_the_permission_is_sent(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, send: Send, ann: str, news: str
) -> None:
    await grant(service, tenant, ann, granted=True)
    message_id = await send(permission=news)
    await settled(service)

    assert (await message_of(client, message_id))["status"] == "sent"


@pytest.mark.parametrize(("in_the_end", "status"), [(True, "sent"), (False, "skipped")])
async def test_what_the_person_says_at_delivery_counts(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    send: Send,
    ann: str,
    news: str,
    channel: RecordingChannel,
    clock: FakeClock,
    in_the_end: bool,
    status: str,
) -> None:
    # A message before it in the chat waits, and so does this one.
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", 60)]
    await send()
    await settled(service)
    await grant(service, tenant, ann, granted=not in_the_end)
    message_id = await send(permission=news)
    await grant(service, tenant, ann, granted=in_the_end)
    clock.advance(61)
    await settled(service)

    assert (await message_of(client, message_id))["status"] == status


@pytest.mark.both_databases
async def test_permissions_are_asked_for_together_by_sends_at_the_same_time(
    service: Service, client: httpx2.AsyncClient, send: Send, news: str
) -> None:
    asked: list[int] = []
    lookup = service.messages._validation._permissions
    load = lookup._load

    async def counted(tx: Tx, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], bool]:
        asked.append(len(keys))
        return await load(tx, keys)

    lookup._load = counted
    await asyncio.gather(*(send(permission=news) for _ in range(20)))
    await send()

    assert sum(asked) <= 20
    assert len(asked) < 20
